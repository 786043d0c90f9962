// SPDX-License-Identifier: BSD-3-Clause
#include "group/plan_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "arith/kernel.hpp"
#include "check/check.hpp"
#include "engine/bind.hpp"
#include "select/select.hpp"

namespace unisono::group {
namespace {

using algorithm::Parameters;
using base::Code;
using base::Error;
using base::Result;
using schedule::Collective;
using schedule::Schedule;
using schedule::Shape;

// Calls with ever new counts would fill the memory.
constexpr std::size_t kMostPlans = 512;
// Segments are cut at a multiple of this, to keep vector loads aligned.
constexpr std::int64_t kSegmentUnit = 256;
// In an operation that goes in one copy, a message below this is put into the window all the same:
// it is done before a system call would be.
constexpr std::int64_t kLeastPull = 2048;

void call_user(void* target, const void* left, const void* right, std::int64_t count,
               const void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  user.function(target, left, right, count, user.type, user.user);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

// What the ranks have to agree on. A user's types and operators count by what can be compared.
std::uint64_t call_hash(const Call& call) {
  const auto number = [](std::int32_t n) {
    return static_cast<std::uint64_t>(n < kFirstUserNumber ? n : kFirstUserNumber);
  };
  std::uint64_t hash = mix(1, static_cast<std::uint64_t>(call.collective));
  hash = mix(hash, static_cast<std::uint64_t>(call.purpose));
  hash = mix(hash, static_cast<std::uint64_t>(call.count));
  hash = mix(hash, number(call.type));
  hash = mix(hash, number(call.op));
  hash = mix(hash, static_cast<std::uint64_t>(call.root));
  hash = mix(hash, static_cast<std::uint64_t>(call.element_bytes));
  return mix(hash, call.ordered ? 1 : 0);
}

std::uint32_t fold_digest(std::uint64_t hash) {
  const auto digest = static_cast<std::uint32_t>((hash ^ (hash >> 32)) & engine::kDigestMask);
  return digest == 0 ? 1 : digest;
}

Shape shape_of(const Call& call, int ranks) {
  return {.collective = call.collective,
          .ranks = ranks,
          .root = schedule::is_rooted(call.collective) ? call.root : 0,
          .count = call.count,
          .ordered = call.ordered};
}

// Collectives whose input or output consists of blocks of `count` elements, one a rank: a segment
// of the call is then a segment of each block.
bool has_input_blocks(Collective c) {
  return c == Collective::scatter || c == Collective::alltoall || c == Collective::reduce_scatter;
}
bool has_output_blocks(Collective c) {
  return schedule::has_blocks(c) && c != Collective::scatter && c != Collective::reduce_scatter;
}

// One plan in the making.
class Maker {
 public:
  Maker(const PlanContext& context, const Call& call)
      : context_(context), call_(call), shape_(shape_of(call, context.ranks)) {}

  Result<std::unique_ptr<CachedPlan>> make() {
    choose();
    cached_->call = call_;
    cached_->algorithm = algorithm::describe(*choice_.algorithm, choice_.parameters);
    fill_call();
    if (!try_single_copy() && !try_small()) UNISONO_TRY(make_bulk());
    fill_digest();
    return std::move(cached_);
  }

 private:
  void choose() {
    if (context_.forced != nullptr && context_.forced->collective == shape_.collective &&
        algorithm::why_illegal(*context_.forced, shape_, context_.forced_parameters).empty()) {
      choice_ = {context_.forced, context_.forced_parameters};
      return;
    }
    choice_ = select::choose(shape_, circumstances());
  }

  select::Circumstances circumstances() const {
    return {.element_bytes = call_.element_bytes,
            .oversubscribed = context_.oversubscribed,
            .multicast = context_.staged_multicast,
            .pull = context_.pull,
            .single_copy_from = context_.single_copy_from};
  }

  void fill_call() {
    engine::Plan& plan = cached_->plan;
    plan.collective = record_number(call_.collective, call_.purpose);
    plan.type = call_.type;
    plan.op = call_.op;
    plan.root = call_.root;
    plan.count = call_.count;
    if (call_.op >= kFirstUserNumber) {
      cached_->user = call_.user;
      plan.kernel = call_user;
      plan.kernel_context = &cached_->user;
    } else if (call_.op >= 0) {
      plan.kernel = arith::find_kernel(static_cast<arith::Operator>(call_.op),
                                       static_cast<arith::Type>(call_.type));
    }
    // A user's function has an address in its own process only.
    const bool can_help =
        context_.shared_windows && context_.ranks > 1 && call_.op < kFirstUserNumber;
    plan.helping =
        can_help && (context_.engine == base::EngineChoice::helping ||
                     (context_.engine == base::EngineChoice::automatic && context_.oversubscribed));
  }

  Result<std::vector<Schedule>> build_set(std::int64_t count) const {
    Shape shape = shape_;
    shape.count = count;
    std::vector<Schedule> set;
    set.reserve(static_cast<std::size_t>(shape.ranks));
    for (int r = 0; r < shape.ranks; ++r) {
      UNISONO_ASSIGN(Schedule schedule,
                     algorithm::build(*choice_.algorithm, shape, choice_.parameters, r));
      set.push_back(std::move(schedule));
    }
    return set;
  }

  engine::BindOptions options(const engine::LaneGeometry& geometry, std::int64_t segment) const {
    engine::BindOptions options{.element_bytes = call_.element_bytes,
                                .input = {},
                                .output = {},
                                .geometry = geometry,
                                .staged_multicast = context_.staged_multicast,
                                .helping = cached_->plan.helping};
    if (segment == call_.count) return options;
    const engine::BufferLayout blocks = {.block = segment, .stride = call_.count};
    if (has_input_blocks(call_.collective)) options.input = blocks;
    if (has_output_blocks(call_.collective)) options.output = blocks;
    return options;
  }

  Result<std::vector<engine::Program>> bind_set(const std::vector<Schedule>& set,
                                                const engine::BindOptions& options) const {
    if (context_.check == base::Toggle::on) {
      const auto violations = check::prove(set, 1);
      if (!violations.empty()) {
        return Error{Code::unsupported,
                     fmt::format("algorithm {} failed its proof: {} (a defect: please report it)",
                                 cached_->algorithm, violations.front().message)};
      }
    }
    return engine::bind(set, context_.rank, options);
  }

  bool try_small() {
    if (call_.count * call_.element_bytes > context_.small.window_bytes()) return false;
    const auto set = build_set(call_.count);
    if (!set) return false;
    const engine::BindOptions how = options(context_.small, call_.count);
    if (!engine::window_need(*set, how).fits(context_.small)) return false;
    auto programs = bind_set(*set, how);
    if (!programs) return false;
    cached_->plan.tail = std::move(*programs);
    return true;
  }

  // The whole vector in one part, if every long message can be pulled.
  bool try_single_copy() {
    if (!select::prefers_single_copy(shape_, circumstances())) return false;
    const auto set = build_set(call_.count);
    if (!set) return false;
    engine::BindOptions how = options(context_.bulk, call_.count);
    how.helping = false;
    how.pull_from = std::min(kLeastPull, call_.count * call_.element_bytes);
    if (!engine::window_need(*set, how).fits(context_.bulk)) return false;
    auto programs = bind_set(*set, how);
    if (!programs) return false;
    cached_->plan.tail = std::move(*programs);
    cached_->plan.bulk = true;
    cached_->plan.helping = false;
    cached_->single_copy = true;
    return true;
  }

  base::Status make_bulk() {
    engine::Plan& plan = cached_->plan;
    plan.bulk = true;
    UNISONO_ASSIGN(const std::int64_t segment, find_segment());
    plan.segments = std::max<std::int64_t>(1, (call_.count + segment - 1) / segment);
    if (plan.segments > 1 && schedule::has_blocks(call_.collective)) plan.helping = false;
    const std::int64_t rest = call_.count - (plan.segments - 1) * segment;
    if (plan.segments > 1) {
      UNISONO_ASSIGN(const auto set, build_set(segment));
      UNISONO_ASSIGN(plan.body, bind_set(set, options(context_.bulk, segment)));
      const std::int64_t stride = segment * call_.element_bytes;
      plan.input_stride = schedule::input_count(shape_, context_.rank) > 0 ? stride : 0;
      plan.output_stride = schedule::output_count(shape_, context_.rank) > 0 ? stride : 0;
    }
    UNISONO_ASSIGN(const auto set, build_set(rest));
    UNISONO_ASSIGN(plan.tail, bind_set(set, options(context_.bulk, rest)));
    return base::success();
  }

  // The longest segment whose schedules fit the bulk windows. All ranks find the same.
  Result<std::int64_t> find_segment() const {
    std::int64_t segment = std::min(
        call_.count, std::max<std::int64_t>(1, context_.bulk.data_bytes / call_.element_bytes));
    for (;;) {
      UNISONO_ASSIGN(const auto set, build_set(segment));
      const auto need = engine::window_need(set, options(context_.bulk, segment));
      if (need.fits(context_.bulk)) return segment;
      if (segment <= 1) {
        return Error{Code::resources,
                     fmt::format("{} on {} ranks needs windows of {} lines and {} bytes, but they "
                                 "have {} and {}; raise UNISONO_BUFFERS",
                                 cached_->algorithm, context_.ranks, need.lines, need.data_bytes,
                                 context_.bulk.lines, context_.bulk.data_bytes)};
      }
      const std::int64_t fitting = static_cast<std::int64_t>(
          static_cast<double>(segment) * static_cast<double>(context_.bulk.data_bytes) /
          static_cast<double>(std::max<std::int64_t>(need.data_bytes, 1)));
      std::int64_t next = std::min(segment - 1, fitting);
      if (next > kSegmentUnit) next -= next % kSegmentUnit;
      segment = std::max<std::int64_t>(1, next);
    }
  }

  // The choices count too: ranks whose settings differ would not fit together.
  void fill_digest() {
    engine::Plan& plan = cached_->plan;
    std::uint64_t hash = call_hash(call_);
    for (const char c : cached_->algorithm) hash = mix(hash, static_cast<std::uint64_t>(c));
    hash = mix(hash, plan.helping ? 1 : 0);
    hash = mix(hash, cached_->single_copy ? 1 : 0);
    hash = mix(hash, static_cast<std::uint64_t>(plan.segments));
    plan.digest = fold_digest(hash);
  }

  const PlanContext& context_;
  const Call& call_;
  Shape shape_;
  select::Choice choice_;
  std::unique_ptr<CachedPlan> cached_ = std::make_unique<CachedPlan>();
};

}  // namespace

std::size_t PlanCache::Hash::operator()(const Call& call) const {
  return static_cast<std::size_t>(call_hash(call));
}

void PlanCache::force(const algorithm::Algorithm* algorithm, const Parameters& parameters) {
  context_.forced = algorithm;
  context_.forced_parameters = parameters;
  plans_.clear();
  ++generation_;
  std::ranges::fill(last_, nullptr);
}

Result<CachedPlan*> PlanCache::find_or_make(const Call& call, bool may_evict) {
  auto found = plans_.find(call);
  if (found == plans_.end()) {
    if (plans_.size() >= kMostPlans && may_evict) {
      std::erase_if(plans_, [](const auto& entry) { return entry.second->pins == 0; });
      ++generation_;
      std::ranges::fill(last_, nullptr);
    }
    UNISONO_ASSIGN(auto made, Maker(context_, call).make());
    found = plans_.emplace(call, std::move(made)).first;
  }
  last_[static_cast<int>(call.collective)] = found->second.get();
  return found->second.get();
}

}  // namespace unisono::group

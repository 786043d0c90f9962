// SPDX-License-Identifier: BSD-3-Clause
#include "group/plan_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "arith/kernel.hpp"
#include "base/log.hpp"
#include "check/check.hpp"
#include "engine/bind.hpp"
#include "engine/bind_local.hpp"
#include "group/digest.hpp"
#include "group/nic_call.hpp"
#include "group/segments.hpp"

namespace unisono::group {
namespace {

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
// Of a rank in another's window, so that blocks of any length go between hosts in pieces.
constexpr std::int64_t kLeastShare = 64;
constexpr std::int64_t kLeastPull = 2048;
// The algorithm where ranks know no counts but their own; a row of every such collective.
constexpr std::string_view kLocal = "linear";

void call_user(void* target, const void* left, const void* right, std::int64_t count,
               const void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  user.function(target, left, right, count, user.type, user.user);
}

// One plan in the making.
class Maker {
 public:
  Maker(const PlanContext& context, const Call& call)
      : context_(context), call_(call), shape_(shape_of(call, context)) {}

  Result<std::unique_ptr<CachedPlan>> make() {
    choose();
    cached_->call = call_;
    cached_->algorithm = algorithm::describe(*choice_.algorithm, choice_.parameters);
    fill_call();
    if (context_.nic) lower_for_nic();
    if (call_.local_counts) {
      UNISONO_TRY(make_local());
    } else {
      UNISONO_TRY(make_global());
    }
    fill_digest();
    return std::move(cached_);
  }

 private:
  void choose() {
    choice_ = select::choose(shape_, circumstances_of(call_, context_), context_.overrides);
    if (call_.local_counts) insist_on_local();
    if (base::log_enabled(base::LogLevel::info)) log_choice();
  }

  void insist_on_local() {
    if (choice_.algorithm->name == kLocal) return;
    choice_.passed_over.push_back(fmt::format(
        "{}: only {} is for ranks that know no counts but their own", choice_.reason, kLocal));
    choice_.algorithm = algorithm::find(call_.collective, kLocal);
    choice_.parameters = {};
    choice_.origin = select::Origin::rule;
    choice_.reason = "ranks know no counts but their own";
  }

  void log_choice() const {
    const std::string called = describe_call(record_number(call_.collective, call_.purpose),
                                             call_.count, call_.type, call_.op, call_.root);
    for (const std::string& text : choice_.passed_over) {
      base::log(base::LogLevel::info, "select", "{}: passed over {}", called, text);
    }
    base::log(base::LogLevel::debug, "select", "{}: {} ({})", called,
              algorithm::describe(*choice_.algorithm, choice_.parameters), choice_.reason);
  }

  void lower_for_nic() {
    const auto lowered = nic_call_of(call_, choice_, context_.rank);
    if (lowered.ok()) cached_->nic = *lowered;
    base::log(base::LogLevel::debug, "nic", "{}: {}", call_name(cached_->plan.collective),
              lowered.ok() ? "by the NIC path" : lowered.error().message);
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
    // A user's function has an address in its own process only; and ranks that know their own
    // counts only do not know each other's programs.
    const bool can_help = context_.shared_windows && context_.ranks > 1 &&
                          call_.op < kFirstUserNumber && !call_.local_counts;
    plan.helping =
        can_help && (context_.engine == base::EngineChoice::helping ||
                     (context_.engine == base::EngineChoice::automatic && context_.oversubscribed));
  }

  Result<std::vector<Schedule>> build_set(const Shape& shape) const {
    std::vector<Schedule> set;
    set.reserve(static_cast<std::size_t>(shape.ranks));
    for (int r = 0; r < shape.ranks; ++r) {
      UNISONO_ASSIGN(Schedule schedule,
                     algorithm::build(*choice_.algorithm, shape, choice_.parameters, r));
      set.push_back(std::move(schedule));
    }
    return set;
  }

  engine::BufferLayout input_layout(const Shape& part) const {
    return layout_of(shape_, part, {context_.rank, Buffer::Side::input, call_.input_places.get()});
  }
  engine::BufferLayout output_layout(const Shape& part) const {
    return layout_of(shape_, part,
                     {context_.rank, Buffer::Side::output, call_.output_places.get()});
  }

  engine::BindOptions options(const engine::LaneGeometry& geometry, const Shape& part) const {
    engine::BindOptions options{.element_bytes = call_.element_bytes,
                                .input = input_layout(part),
                                .output = output_layout(part),
                                .geometry = geometry,
                                .staged_multicast = context_.staged_multicast,
                                .helping = cached_->plan.helping,
                                .hosts = context_.hosts,
                                .group = context_.group};
    return options;
  }

  Result<std::vector<engine::Program>> bind_set(const std::vector<Schedule>& set,
                                                const engine::BindOptions& options) const {
    UNISONO_TRY(prove_if_asked(set));
    return engine::bind(set, context_.rank, options);
  }

  base::Status prove_if_asked(const std::vector<Schedule>& set) const {
    if (context_.check != base::Toggle::on) return base::success();
    const auto violations = check::prove(set, 1);
    if (violations.empty()) return base::success();
    return Error{Code::unsupported,
                 fmt::format("algorithm {} failed its proof: {} (a defect: please report it)",
                             cached_->algorithm, violations.front().message)};
  }

  // Of ranks that know all counts.
  base::Status make_global() {
    longest_ = longest_vector(shape_);
    UNISONO_ASSIGN(const bool is_pulled, try_single_copy());
    if (is_pulled) return base::success();
    UNISONO_ASSIGN(const bool is_small, try_small());
    return is_small ? base::success() : make_bulk();
  }

  Result<bool> try_small() {
    if (longest_ * call_.element_bytes > context_.small.window_bytes()) return false;
    return try_whole(options(context_.small, shape_));
  }

  // The whole vector in one part, if every long message can be pulled.
  Result<bool> try_single_copy() {
    if (call_.blocks.given() ||
        !select::prefers_single_copy(shape_, circumstances_of(call_, context_)))
      return false;
    engine::BindOptions how = options(context_.bulk, shape_);
    how.helping = false;
    how.pull_from = std::clamp<std::int64_t>(longest_ * call_.element_bytes, 1, kLeastPull);
    UNISONO_ASSIGN(const bool is_bound, try_whole(how));
    if (!is_bound) return false;
    cached_->plan.bulk = true;
    cached_->single_copy = true;
    return true;
  }

  // Without segments, if the windows hold it. Errors: those of a proof.
  Result<bool> try_whole(const engine::BindOptions& how) {
    UNISONO_ASSIGN(const auto set, build_set(shape_));
    if (!engine::window_need(set, how).fits(how.geometry)) return false;
    UNISONO_ASSIGN(auto programs, bind_set(set, how));
    cached_->plan.helping = how.helping;
    cached_->plan.parts.push_back({1, std::move(programs)});
    return true;
  }

  base::Status make_bulk() {
    engine::Plan& plan = cached_->plan;
    plan.bulk = true;
    UNISONO_ASSIGN(const std::int64_t segment, find_segment());
    plan.segments = std::max<std::int64_t>(1, (longest_ + segment - 1) / segment);
    const std::int64_t stride = segment * call_.element_bytes;
    plan.input_stride = schedule::input_count(shape_, context_.rank) > 0 ? stride : 0;
    plan.output_stride = schedule::output_count(shape_, context_.rank) > 0 ? stride : 0;
    for (std::int64_t n = 0; n < plan.segments; ++n) {
      const Shape part = segment_of(shape_, n * segment, segment);
      if (n > 0 && part == last_part_) {
        plan.parts.back().end = n + 1;
        continue;
      }
      UNISONO_ASSIGN(const auto set, build_set(part));
      UNISONO_ASSIGN(auto programs, bind_set(set, options(context_.bulk, part)));
      plan.parts.push_back({n + 1, std::move(programs)});
      last_part_ = part;
    }
    return base::success();
  }

  // The longest segment whose schedules fit the bulk windows. All ranks find the same.
  Result<std::int64_t> find_segment() const {
    std::int64_t segment = std::max<std::int64_t>(
        1, std::min(longest_, context_.bulk.data_bytes / call_.element_bytes));
    for (;;) {
      const Shape part = segment_of(shape_, 0, segment);
      UNISONO_ASSIGN(const auto set, build_set(part));
      const auto need = engine::window_need(set, options(context_.bulk, part));
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

  // This rank's own schedule. It is proved with those that the others would have if nobody dealt
  // with anybody but this rank: what they do with each other is not known here.
  Result<Schedule> build_local() const {
    if (context_.check != base::Toggle::on) {
      return algorithm::build(*choice_.algorithm, shape_, {}, context_.rank);
    }
    UNISONO_ASSIGN(auto set, build_set(shape_));
    UNISONO_TRY(prove_if_asked(set));
    return std::move(set[static_cast<std::size_t>(context_.rank)]);
  }

  // Of one part: ranks that do not know each other's counts cannot agree on more.
  base::Status make_local() {
    UNISONO_ASSIGN(const Schedule schedule, build_local());
    engine::LocalOptions how{.element_bytes = call_.element_bytes,
                             .input = input_layout(shape_),
                             .output = output_layout(shape_),
                             .geometry = context_.bulk,
                             .pull = context_.pull,
                             .in_place = call_.in_place,
                             .hosts = context_.hosts};
    if (!how.hosts.empty() && engine::longest_block(how) < kLeastShare) {
      return Error{
          Code::resources,
          fmt::format("{} on {} ranks of several hosts needs a share of {} bytes of the "
                      "windows for each, but they have {}; raise UNISONO_BUFFERS",
                      cached_->algorithm, context_.ranks, kLeastShare, engine::longest_block(how))};
    }
    engine::Plan& plan = cached_->plan;
    std::vector<engine::Program> programs(static_cast<std::size_t>(context_.ranks));
    auto& own = programs[static_cast<std::size_t>(context_.rank)];
    own = engine::bind_local(schedule, how);
    plan.staging_bytes = own.staging_bytes;
    plan.bulk = true;
    plan.parts.push_back({1, std::move(programs)});
    return base::success();
  }

  // The choices count too: ranks whose settings differ would not fit together.
  void fill_digest() {
    engine::Plan& plan = cached_->plan;
    Digest digest(call_);
    digest.add(cached_->algorithm);
    digest.add(plan.helping ? 1 : 0);
    digest.add(cached_->single_copy ? 1 : 0);
    digest.add(static_cast<std::uint64_t>(plan.segments));
    plan.digest = digest.folded();
  }

  const PlanContext& context_;
  const Call& call_;
  Shape shape_;
  std::int64_t longest_ = 0;
  Shape last_part_;
  select::Choice choice_;
  std::unique_ptr<CachedPlan> cached_ = std::make_unique<CachedPlan>();
};

// Whether the first rank of each host is in the group that multicasts between hosts.
bool leaders_multicast(const PlanContext& context) {
  const schedule::HostMap& map = context.host_map;
  if (!map.given() || context.group.empty()) return false;
  for (int host = 0; host < map.hosts(); ++host) {
    const auto leader = static_cast<std::size_t>(map.members(host).front());
    if (!context.group[leader]) return false;
  }
  return true;
}

}  // namespace

Shape shape_of(const Call& call, const PlanContext& context) {
  return {.collective = call.collective,
          .ranks = context.ranks,
          .root = schedule::is_rooted(call.collective) ? call.root : 0,
          .count = call.blocks.given() ? 0 : call.count,
          .ordered = call.ordered,
          .blocks = call.blocks,
          .hosts = context.host_map};
}

select::Circumstances circumstances_of(const Call& call, const PlanContext& context) {
  return {.element_bytes = call.element_bytes,
          .oversubscribed = context.oversubscribed,
          .multicast = context.multicast,
          .leaders_multicast = leaders_multicast(context),
          .pull = context.pull,
          .single_copy_from = context.single_copy_from};
}

bool PlanCache::same_blocks(const Call& a, const Call& b) {
  const auto same = [](const Displacements& x, const Displacements& y) {
    return x == y || (x != nullptr && y != nullptr && *x == *y);
  };
  return a.local_counts == b.local_counts && a.in_place == b.in_place && a.blocks == b.blocks &&
         same(a.input_places, b.input_places) && same(a.output_places, b.output_places);
}

std::size_t PlanCache::Hash::operator()(const Call& call) const {
  Digest digest(call);
  // Ranks need not agree on it, but a rank's plans for other counts should lie apart.
  if (call.local_counts) digest.add(static_cast<std::uint64_t>(call.count));
  return static_cast<std::size_t>(digest.hash());
}

void PlanCache::override_with(const select::Overrides& overrides) {
  context_.overrides = overrides;
  forget_all();
}

void PlanCache::use_nic() {
  context_.nic = true;
  forget_all();
}

void PlanCache::forget_all() {
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

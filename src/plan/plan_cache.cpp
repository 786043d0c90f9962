// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan_cache.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "arith/kernel.hpp"
#include "arith/sums/sum_in_order.hpp"
#include "base/log.hpp"
#include "model/default_machine.hpp"
#include "plan/digest.hpp"
#include "plan/make_programs.hpp"
#include "plan/operator_failure.hpp"
#include "plan/segments.hpp"
#include "select/candidates.hpp"

namespace unisono::plan {
namespace {

using base::Result;
using schedule::Collective;
using schedule::Shape;

// Calls with ever new counts would fill the memory.
constexpr std::size_t kMostPlans = 512;

// Staging, the results of multicasts, records and learning.
bool needs_extras(const Plan& plan) {
  return plan.staging_bytes != 0 || plan.multicasts || plan.recording.row != nullptr ||
         plan.learns || plan.learned != nullptr;
}

bool sends_to_all(const Plan& plan, int rank) {
  if (plan.parts == nullptr) return false;
  const auto is_to_all = [](const Step& step) { return step.to_all && step.kind == StepKind::put; };
  for (std::size_t part = 0;; ++part) {
    const Plan::Part& each = plan.parts[static_cast<std::ptrdiff_t>(part)];
    if (std::ranges::any_of(each.programs[static_cast<std::size_t>(rank)].steps, is_to_all)) {
      return true;
    }
    if (each.end == plan.segments) return false;
  }
}

std::shared_ptr<Plan> without_learning(const Plan& plan) {
  auto settled = std::make_shared<Plan>(plan);
  settled->learns = false;
  settled->has_extras = needs_extras(*settled);
  return settled;
}

void call_user(void* target, const void* left, const void* right, std::int64_t count,
               const void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  FunctionRun run;
  try {
    user.function(target, left, right, count, user.type, user.user);
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread ends
  } catch (const std::exception& thrown) {
    run.fail(std::string("its function throws: ") + thrown.what());
  } catch (...) {
    run.fail("its function throws");
  }
  run.throw_failure();
}

// One plan in the making.
class PlanMaker {
 public:
  // alike: a plan with the same programs if its algorithm is the same, or null.
  // as: the algorithm that it takes, or null: the choice is free.
  PlanMaker(const PlanContext& context, const Call& call, select::KnownChoices& known,
            const Plan* alike, const Alternative* as = nullptr)
      : context_(context),
        call_(call),
        shape_(shape_of(call, context)),
        known_(known),
        alike_(alike),
        as_(as) {}

  Result<std::shared_ptr<const Plan>> make() {
    choose();
    if (choice_.engine == select::EngineKind::nic) {
      UNISONO_TRY(lower_for_nic());
    } else if (alike_ != nullptr && alike_->algorithm == name_) {
      *plan_ = *alike_;
    } else {
      UNISONO_TRY(make_programs(context_, call_, choice_, *plan_));
    }
    fill_call();
    fill_digest();
    fill_extras();
    return std::shared_ptr<const Plan>(std::move(plan_));
  }

 private:
  void choose() {
    choice_ =
        select::choose(shape_, circumstances_of(call_, context_), context_.overrides, &known_);
    if (as_ != nullptr) {
      choice_ = select::choose_as(choice_, *as_->row, as_->parameters, "tried, or learned");
    }
    name_ = algorithm::describe(*choice_.algorithm, choice_.parameters);
    if (base::log_enabled(base::LogLevel::info)) log_choice();
  }

  void log_choice() const {
    const std::string called = describe_call(call_code(call_.collective, call_.purpose),
                                             call_.count, call_.type, call_.op, call_.root);
    for (const std::string& text : choice_.passed_over) {
      base::log(base::LogLevel::info, "select", "{}: passed over {}", called, text);
    }
    base::log(base::LogLevel::debug, "select", "{}: {} ({}), {} ({}){}", called, name_,
              choice_.reason, select::engine_name(choice_.engine), choice_.engine_reason,
              choice_.nic_asks ? ", where the root asks" : "");
    if (choice_.why_not_nic.empty()) return;
    base::log(base::LogLevel::debug, "select", "{}: not by the NIC path: {}", called,
              choice_.why_not_nic);
  }

  base::Status lower_for_nic() {
    NicShape shape = select::nic_shape_of(shape_, circumstances_of(call_, context_));
    shape.asks = choice_.nic_asks;
    UNISONO_ASSIGN(plan_->nic, lower_call(shape, context_.rank));
    plan_->engine = select::EngineKind::nic;
    return base::success();
  }

  void fill_call() {
    plan_->collective = call_code(call_.collective, call_.purpose);
    plan_->type = call_.type;
    plan_->op = call_.op;
    plan_->root = call_.root;
    plan_->count = call_.count;
    plan_->algorithm = std::move(name_);
    plan_->user = {};
    plan_->kernel = nullptr;
    plan_->sum = nullptr;
    if (call_.op >= kFirstUserNumber) {
      plan_->user = call_.user;
      plan_->kernel = call_user;
    } else if (call_.op >= 0) {
      plan_->kernel = arith::find_kernel(static_cast<arith::Operator>(call_.op),
                                         static_cast<arith::Type>(call_.type));
      if (static_cast<arith::Operator>(call_.op) == arith::Operator::sum) {
        const bool in_order = context_.reproducible == base::Reproducible::of_ranks;
        plan_->sum = (in_order ? arith::find_sum_in_order
                               : arith::find_exact_sum)(static_cast<arith::Type>(call_.type));
      }
    }
  }

  // The choices count too: ranks with different settings would not fit together.
  void fill_digest() {
    Digest digest(call_);
    digest.add(plan_->algorithm);
    digest.add(static_cast<std::uint64_t>(plan_->engine));
    digest.add(plan_->single_copy ? 1 : 0);
    digest.add(static_cast<std::uint64_t>(plan_->segments));
    plan_->digest = digest.folded();
  }

  void fill_extras() {
    plan_->recording = {};
    if (context_.profile != nullptr) fill_recording(*context_.profile);
    plan_->multicasts = sends_to_all(*plan_, context_.rank);
    plan_->learns = context_.learns && can_learn();
    plan_->learned = nullptr;
    plan_->has_extras = needs_extras(*plan_);
  }

  // Ranks learn from calls of users whose counts, types and operator all of them know.
  bool can_learn() const {
    return call_.purpose == Purpose::user && plan_->engine != select::EngineKind::nic &&
           call_.type < arith::kTypeCount && call_.op < arith::kOperatorCount &&
           plan_->staging_bytes == 0;
  }

  static std::string name_of(std::int32_t number, std::string (*name)(std::int32_t)) {
    if (number < 0) return "";
    return number < kFirstUserNumber ? name(number) : "user";
  }

  void fill_recording(profile::Profile& profile) {
    const bool has_data = call_.collective != Collective::barrier;
    profile::Recording& recording = plan_->recording;
    recording.bytes = has_data ? call_.count * call_.element_bytes : 0;
    recording.predicted_ns = predict();
    recording.row = &profile.row({.collective = call_name(plan_->collective),
                                  .op = name_of(call_.op, operator_text),
                                  .type = has_data ? name_of(call_.type, type_text) : "",
                                  .bytes_class = profile::size_class(recording.bytes),
                                  .ranks = context_.ranks,
                                  .hosts = context_.hosts.given() ? context_.hosts.hosts() : 1,
                                  .algorithm = plan_->algorithm,
                                  .engine = std::string(select::engine_name(plan_->engine)),
                                  .reason = ""});
  }

  // -1 where a rank does not know the others' counts, and where there are too many steps.
  std::int64_t predict() const {
    if (call_.local_counts) return -1;
    const select::Circumstances now = circumstances_of(call_, context_);
    const auto price = select::price_if_priceable(*choice_.algorithm, choice_.parameters, shape_,
                                                  select::pricing_of(shape_, now, plan_->engine));
    return price ? static_cast<std::int64_t>(price->ns) : -1;
  }

  const PlanContext& context_;
  const Call& call_;
  Shape shape_;
  select::KnownChoices& known_;
  const Plan* alike_;
  const Alternative* as_;
  select::Choice choice_;
  std::string name_;  // of the algorithm, with its parameters
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

// The call as make_programs sees it. It does not depend on the operator, except that helpers cannot
// execute a user's.
Call without_type(const Call& call) {
  Call same = call;
  same.type = 0;
  same.op = call.op < 0 ? -1 : call.op < kFirstUserNumber ? 0 : kFirstUserNumber;
  same.user = {};
  return same;
}

template <class Kind>
std::optional<Kind> built_in(std::int32_t number) {
  if (number < 0 || number >= kFirstUserNumber) return std::nullopt;
  return static_cast<Kind>(number);
}

// Whether the first rank of each host is in the group that multicasts between hosts.
bool leaders_multicast(const PlanContext& context) {
  const topology::HostMap& map = context.hosts;
  if (!map.given() || context.group.empty()) return false;
  for (int host = 0; host < map.hosts(); ++host) {
    const auto leader = static_cast<std::size_t>(map.members(host).front());
    if (!context.group[leader]) return false;
  }
  return true;
}

// Whether the result depends on the order in which the contributions are combined.
bool rounds(const Call& call) {
  const auto op = built_in<arith::Operator>(call.op);
  const auto type = built_in<arith::Type>(call.type);
  return op == arith::Operator::sum && type && arith::find_exact_sum(*type) != nullptr;
}

select::BuffersBySize buffers_of(const Geometries& receive_buffers) {
  select::BuffersBySize buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const ReceiveGeometry& size = receive_buffers.at(i);
    if (size.given()) buffers[i] = {size.receive_buffer_bytes(), size.slot_indexes};
  }
  return buffers;
}

}  // namespace

Shape shape_of(const Call& call, const PlanContext& context) {
  return {.collective = call.collective,
          .ranks = context.ranks,
          .root = schedule::is_rooted(call.collective) ? call.root : 0,
          .count = call.blocks.given() ? 0 : call.count,
          .ordered = call.ordered,
          .blocks = call.blocks,
          .hosts = context.hosts,
          .exact = rounds(call) && context.reproducible != base::Reproducible::no,
          .by_one = context.heterogeneous && schedule::is_reduction(call.collective)};
}

std::int64_t machine_bytes(const PlanContext& context, model::Constant constant) {
  const model::Machine& machine =
      context.machine != nullptr ? *context.machine : model::default_machine();
  return std::max<std::int64_t>(1, model::constant_of(machine, constant).count());
}

std::int64_t most_of_segment(const PlanContext& context, Collective collective) {
  const std::int64_t buffer = context.receive_buffers[SizeClass::bulk].data_bytes;
  const bool is_streamed = context.streams && context.hosts.given();
  if (!is_streamed || schedule::has_blocks(collective)) return buffer;
  const std::int64_t piece =
      std::min(buffer, machine_bytes(context, model::Constant::streamed_piece));
  return std::min(buffer, longest_streamed(collective, context.hosts.hosts(), piece));
}

select::Circumstances circumstances_of(const Call& call, const PlanContext& context) {
  return {.element_bytes = call.element_bytes,
          .oversubscribed = context.oversubscribed,
          .cores = context.cores,
          .shared_cores = context.shared_cores,
          .multicast = context.multicast,
          .staged_multicast = context.staged_multicast,
          .leaders_multicast = leaders_multicast(context),
          .streams = context.streams,
          .pull = context.pull,
          .single_copy_from = context.single_copy_from,
          .receive_buffer_bytes = context.receive_buffers[SizeClass::bulk].data_bytes,
          .segment_bytes = most_of_segment(context, call.collective),
          .buffers = buffers_of(context.receive_buffers),
          .machine = context.machine,
          .op = built_in<arith::Operator>(call.op),
          .type = built_in<arith::Type>(call.type),
          .local_counts = call.local_counts,
          .is_plain = call.purpose == Purpose::user,
          .shared_receive_buffers = context.shared_receive_buffers,
          .engine = context.engine,
          .nic = context.nic,
          .nic_multicasts = context.nic_multicasts};
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
  known_.shared = nullptr;  // the table has the choices of the ranks with the former ones
  forget_all();
}

void PlanCache::use_nic(const nic::Preferences& preferences) {
  context_.nic = preferences;
  forget_all();
}

void PlanCache::forget_all() {
  last_used_ = nullptr;
  plans_.clear();
  replaced_.clear();
  with_programs_.clear();
  known_.own.clear();
  forget_found();
}

// Plans that somebody shares stay.
void PlanCache::evict() {
  std::erase_if(plans_, [this](const Entry& entry) {
    const Plan& plan = *entry.second;
    return entry.second.use_count() == 1 && &plan != last_used_ &&
           (last_used_ == nullptr || plan.learned.get() != last_used_);
  });
  std::erase_if(replaced_, [this](const auto& plan) { return plan.get() != last_used_; });
  std::erase_if(with_programs_, [](const auto& entry) { return entry.second.expired(); });
  forget_found();
}

void PlanCache::settle(const Plan& plan, const Plan& by) {
  const auto found = std::ranges::find_if(
      plans_, [&plan](const Entry& entry) { return entry.second.get() == &plan; });
  if (found == plans_.end()) return;
  const std::shared_ptr<Plan> settled = without_learning(plan);
  if (&by != &plan) {
    settled->learned = without_learning(by);
    settled->has_extras = true;
  }
  replaced_.push_back(std::exchange(found->second, settled));
  forget_found();
}

void PlanCache::forget_found() {
  ++generation_;
  std::ranges::fill(last_, nullptr);
}

Result<std::shared_ptr<const Plan>> PlanCache::make(const Call& call) {
  const Call key = without_type(call);
  const auto found = with_programs_.find(key);
  const auto alike = found == with_programs_.end() ? nullptr : found->second.lock();
  UNISONO_ASSIGN(auto made, PlanMaker(context_, call, known_, alike.get()).make());
  if (made->parts != nullptr) with_programs_[key] = made;
  return made;
}

std::vector<Alternative> PlanCache::alternatives(const Call& call) {
  const Shape shape = shape_of(call, context_);
  const select::Circumstances now = circumstances_of(call, context_);
  const select::Choice choice = select::choose(shape, now, context_.overrides, &known_);
  std::vector<Alternative> found;
  for (const select::Priced& each :
       select::candidates_to_try(shape, now, context_.overrides, choice)) {
    found.push_back({.row = each.row,
                     .parameters = each.parameters,
                     .name = algorithm::describe(*each.row, each.parameters)});
  }
  return found;
}

Result<std::shared_ptr<const Plan>> PlanCache::make_as(const Call& call,
                                                       const Alternative& alternative) {
  return PlanMaker(context_, call, known_, nullptr, &alternative).make();
}

Result<const Plan*> PlanCache::find_or_make(const Call& call, bool may_evict) {
  auto found = plans_.find(call);
  if (found == plans_.end()) {
    if (plans_.size() >= kMostPlans && may_evict) evict();
    UNISONO_ASSIGN(auto made, make(call));
    found = plans_.emplace(call, std::move(made)).first;
  }
  last_[static_cast<int>(call.collective)] = &*found;
  return found->second.get();
}

}  // namespace unisono::plan

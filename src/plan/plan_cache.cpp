// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "arith/kernel.hpp"
#include "base/log.hpp"
#include "plan/digest.hpp"
#include "plan/lower_for_nic.hpp"

namespace unisono::plan {
namespace {

using base::Result;
using schedule::Collective;
using schedule::Shape;

// Calls with ever new counts would fill the memory.
constexpr std::size_t kMostPlans = 512;
// The algorithm where ranks know no counts but their own; a row of every such collective.
constexpr std::string_view kLocal = "linear";

void call_user(void* target, const void* left, const void* right, std::int64_t count,
               const void* context) {
  const auto& user = *static_cast<const UserOperator*>(context);
  user.function(target, left, right, count, user.type, user.user);
}

// One plan in the making.
class PlanMaker {
 public:
  // bound: the common part of this and another plan, or null.
  PlanMaker(const PlanContext& context, const Call& call, std::shared_ptr<const BoundPlan> bound)
      : context_(context), call_(call), shape_(shape_of(call, context)) {
    cached_->bound = std::move(bound);
  }

  Result<std::unique_ptr<CachedPlan>> make() {
    choose();
    cached_->call = call_;
    cached_->algorithm = algorithm::describe(*choice_.algorithm, choice_.parameters);
    fill_call();
    if (context_.nic) lower_for_nic();
    if (cached_->bound == nullptr) {
      UNISONO_ASSIGN(cached_->bound, bind_plan(context_, call_, choice_));
    }
    fill_bound();
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
    const NicCommunicator path = {.hosts = context_.hosts, .preferences = *context_.nic};
    const auto lowered = nic_call_of(call_, choice_, path, context_.rank);
    if (lowered.ok()) cached_->plan.nic = *lowered;
    base::log(base::LogLevel::debug, "nic", "{}: {}", call_name(cached_->plan.collective),
              lowered.ok() ? "by the NIC path" : lowered.error().message);
  }

  void fill_call() {
    Plan& plan = cached_->plan;
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
  }

  void fill_bound() {
    const BoundPlan& bound = *cached_->bound;
    Plan& plan = cached_->plan;
    plan.engine = plan.nic        ? select::EngineKind::nic
                  : bound.helping ? select::EngineKind::helping
                                  : select::EngineKind::inline_;
    plan.bulk = bound.bulk;
    plan.segments = bound.segments;
    plan.input_stride = bound.input_stride;
    plan.output_stride = bound.output_stride;
    plan.parts = bound.parts;
    plan.staging_bytes = bound.staging_bytes;
  }

  // The choices count too: ranks with different settings would not fit together.
  void fill_digest() {
    Plan& plan = cached_->plan;
    Digest digest(call_);
    digest.add(cached_->algorithm);
    digest.add(static_cast<std::uint64_t>(plan.engine));
    digest.add(cached_->bound->single_copy ? 1 : 0);
    digest.add(static_cast<std::uint64_t>(plan.segments));
    plan.digest = digest.folded();
  }

  const PlanContext& context_;
  const Call& call_;
  Shape shape_;
  select::Choice choice_;
  std::unique_ptr<CachedPlan> cached_ = std::make_unique<CachedPlan>();
};

// The call as a BoundPlan sees it. It does not depend on the operator, except that helpers cannot
// execute a user's.
Call without_type(const Call& call) {
  Call same = call;
  same.type = 0;
  same.op = call.op < 0 ? -1 : call.op < kFirstUserNumber ? 0 : kFirstUserNumber;
  same.user = {};
  return same;
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

}  // namespace

Shape shape_of(const Call& call, const PlanContext& context) {
  return {.collective = call.collective,
          .ranks = context.ranks,
          .root = schedule::is_rooted(call.collective) ? call.root : 0,
          .count = call.blocks.given() ? 0 : call.count,
          .ordered = call.ordered,
          .blocks = call.blocks,
          .hosts = context.hosts};
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

void PlanCache::use_nic(const nic::Preferences& preferences) {
  context_.nic = preferences;
  forget_all();
}

void PlanCache::forget_all() {
  last_used_ = nullptr;
  plans_.clear();
  bound_.clear();
  forget_found();
}

void PlanCache::evict() {
  std::erase_if(plans_, [this](const auto& entry) {
    return entry.second->pins == 0 && entry.second.get() != last_used_;
  });
  std::erase_if(bound_, [](const auto& entry) { return entry.second.expired(); });
  forget_found();
}

void PlanCache::forget_found() {
  ++generation_;
  std::ranges::fill(last_, nullptr);
}

Result<std::unique_ptr<CachedPlan>> PlanCache::make(const Call& call) {
  const Call alike = without_type(call);
  const auto found = bound_.find(alike);
  auto bound = found == bound_.end() ? nullptr : found->second.lock();
  UNISONO_ASSIGN(auto made, PlanMaker(context_, call, std::move(bound)).make());
  bound_[alike] = made->bound;
  return made;
}

Result<CachedPlan*> PlanCache::find_or_make(const Call& call, bool may_evict) {
  auto found = plans_.find(call);
  if (found == plans_.end()) {
    if (plans_.size() >= kMostPlans && may_evict) evict();
    UNISONO_ASSIGN(auto made, make(call));
    found = plans_.emplace(call, std::move(made)).first;
  }
  last_[static_cast<int>(call.collective)] = found->second.get();
  return found->second.get();
}

}  // namespace unisono::plan

// SPDX-License-Identifier: BSD-3-Clause
// PlanCache: the plans of a communicator. A repeated call finds its plan by comparing a few
// numbers. For a new one it chooses an algorithm, builds all ranks' schedules, splits long calls
// into segments, and binds. Calls with other types of the same size and other operators share the
// bound part. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "plan/bound_plan.hpp"
#include "plan/call.hpp"
#include "plan/geometry.hpp"
#include "plan/plan.hpp"
#include "schedule/shape.hpp"
#include "select/select.hpp"

namespace unisono::plan {

// The facts besides the call on which plans depend; the same on all ranks.
struct PlanContext {
  int rank = 0;
  int ranks = 1;
  bool oversubscribed = false;
  bool staged_multicast = false;  // among the ranks of a host
  bool multicast = false;         // a message to all members is staged once, on each host
  bool shared_windows = false;
  base::EngineChoice engine = base::EngineChoice::automatic;
  bool pull = false;                   // ranks can read each other's memory
  topology::HostMap hosts{};           // empty: all ranks are on one host
  std::vector<bool> group{};           // as BindOptions::group
  std::int64_t single_copy_from = -1;  // UNISONO_SINGLE_COPY_FROM; negative: auto
  base::Toggle check = base::Toggle::off;
  WindowGeometry small, bulk;
  select::Overrides overrides;               // UNISONO_ALGORITHM
  std::optional<nic::Preferences> nic = {};  // the communicator has a NIC path, used so
};

// The input of the choice of an algorithm for a call.
schedule::Shape shape_of(const Call& call, const PlanContext& context);
select::Circumstances circumstances_of(const Call& call, const PlanContext& context);

struct CachedPlan {
  Call call;
  std::string algorithm;  // with its parameters
  UserOperator user;      // the kernel's context, for an operator of the user's
  int pins = 0;           // persistent plans that hold it
  std::shared_ptr<const BoundPlan> bound;
  Plan plan;  // of `bound`
};

class PlanCache {
 public:
  explicit PlanCache(const PlanContext& context) : context_(context) {}

  // The call's plan, valid until the cache is cleared; may_evict: no operation is in progress.
  base::Result<CachedPlan*> find(const Call& call, bool may_evict) {
    CachedPlan* last = last_[static_cast<int>(call.collective)];
    if (last != nullptr && same(last->call, call)) [[likely]]
      return last;
    return find_or_make(call, may_evict);
  }
  // The plan of the last operation that began, which stays when others are evicted; null: none, or
  // all were forgotten since.
  const CachedPlan* last_used() const { return last_used_; }
  void use(const CachedPlan& plan) { last_used_ = &plan; }
  // Changes when plans that were found before may be gone.
  std::uint64_t generation() const { return generation_; }
  // Forgets all plans. For tests.
  void override_with(const select::Overrides& overrides);
  // From now on plans say which calls use the NIC path. Called before the first user's call.
  void use_nic(const nic::Preferences& preferences);

 private:
  static bool same(const Call& a, const Call& b) {
    return a.count == b.count && a.type == b.type && a.op == b.op && a.root == b.root &&
           a.purpose == b.purpose && a.collective == b.collective &&
           (!a.blocks.given() || same_blocks(a, b));
  }
  static bool same_blocks(const Call& a, const Call& b);
  struct Hash {
    std::size_t operator()(const Call& call) const;
  };
  struct Same {
    bool operator()(const Call& a, const Call& b) const { return same(a, b); }
  };

  // Compares calls without the parts on which a BoundPlan does not depend.
  struct SameBound {
    bool operator()(const Call& a, const Call& b) const {
      return same(a, b) && a.element_bytes == b.element_bytes && a.ordered == b.ordered;
    }
  };

  base::Result<CachedPlan*> find_or_make(const Call& call, bool may_evict);
  base::Result<std::unique_ptr<CachedPlan>> make(const Call& call);
  void evict();
  void forget_all();
  void forget_found();

  PlanContext context_;
  std::uint64_t generation_ = 1;
  const CachedPlan* last_used_ = nullptr;
  CachedPlan* last_[schedule::kCollectiveCount] = {};
  std::unordered_map<Call, std::unique_ptr<CachedPlan>, Hash, Same> plans_;
  // Owned by the plans, so there are never more of them than plans.
  std::unordered_map<Call, std::weak_ptr<const BoundPlan>, Hash, SameBound> bound_;
};

}  // namespace unisono::plan

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
#include "plan/call.hpp"
#include "plan/choice_table.hpp"
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
  int cores = 1;                  // if all ranks are on one host: its cores
  int shared_cores = 0;           // of the machine that all hosts are on; 0: not known
  bool staged_multicast = false;  // among the ranks of a host
  bool multicast = false;         // a message to all members is staged once, on each host
  bool streams = false;           // long messages between hosts go by streams, or by remote memory
  bool shared_receive_buffers = false;
  base::EngineChoice engine = base::EngineChoice::automatic;
  bool pull = false;  // ranks can read each other's memory
  base::Reproducible reproducible = base::Reproducible::no;
  bool heterogeneous = false;          // one rank alone applies the operator of a reduction
  bool refer = false;                  // a put is a store, and ranks share one memory
  topology::HostMap hosts{};           // empty: all ranks are on one host
  std::vector<bool> group{};           // as BindOptions::group
  std::int64_t land_from = 0;          // as BindOptions::land_from
  std::int64_t single_copy_from = -1;  // UNISONO_SINGLE_COPY_FROM; negative: auto
  base::Toggle check = base::Toggle::off;
  Geometries receive_buffers;
  select::Overrides overrides;  // UNISONO_ALGORITHM
  // By which it is chosen; outlives the cache. Null: the default machine.
  const model::Machine* machine = nullptr;
  bool learns = false;                       // measured times replace algorithms (UNISONO_LEARN)
  std::optional<nic::Preferences> nic = {};  // the communicator has a NIC path, used so
  bool nic_multicasts = false;               // ... and the job multicasts between hosts
  profile::Profile* profile = nullptr;       // of the rank; outlives the cache. Null: none
  // All ranks are on one host, and this is their table; outlives the cache. Null: none.
  ChoiceEntry* choices = nullptr;
};

// A number of bytes that the machine's file gives; at least 1.
std::int64_t machine_bytes(const PlanContext& context, model::Constant constant);
// The input of the choice of an algorithm for a call.
schedule::Shape shape_of(const Call& call, const PlanContext& context);
select::Circumstances circumstances_of(const Call& call, const PlanContext& context);
// The most bytes of a vector, or of each block, in one segment, if its messages fit the buffers.
std::int64_t most_of_segment(const PlanContext& context, schedule::Collective collective);

// A candidate for a call.
struct Alternative {
  const algorithm::Algorithm* row = nullptr;
  algorithm::Parameters parameters;
  std::string name;  // with the parameters
};

class PlanCache {
 public:
  explicit PlanCache(const PlanContext& context) : context_(context), table_(context.choices) {
    if (context.choices != nullptr) known_.shared = &table_;
  }
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // The call's plan, valid until generation() changes. A persistent plan shares it and keeps it
  // longer (shared_from_this). may_evict: no operation is in progress.
  base::Result<const Plan*> find(const Call& call, bool may_evict) {
    const Entry* last = last_[static_cast<int>(call.collective)];
    if (last != nullptr && same(last->first, call)) [[likely]]
      return last->second.get();
    return find_or_make(call, may_evict);
  }
  // The plan of the last operation that began, which stays when others are evicted; null: none, or
  // all were forgotten since.
  const Plan* last_used() const { return last_used_; }
  void use(const Plan& plan) { last_used_ = &plan; }
  // Changes when plans that were found before may be gone.
  std::uint64_t generation() const { return generation_; }
  // The candidates among which measured times may choose (select/lesson.hpp); first the one that
  // find() takes. Empty: there is no choice.
  std::vector<Alternative> alternatives(const Call& call);
  // A plan by one of these, which the cache does not keep.
  base::Result<std::shared_ptr<const Plan>> make_as(const Call& call,
                                                    const Alternative& alternative);
  // Ends the learning of a plan of this cache: from now on blocking calls take the algorithm of
  // `by` without the learner. Callers may use the plan until the next call that may evict. Another
  // plan is left as it is.
  void settle(const Plan& plan, const Plan& by);
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

  // Compares calls from which without_type() has removed what make_programs ignores.
  struct SamePrograms {
    bool operator()(const Call& a, const Call& b) const {
      return same(a, b) && a.element_bytes == b.element_bytes && a.ordered == b.ordered;
    }
  };

  using Plans = std::unordered_map<Call, std::shared_ptr<const Plan>, Hash, Same>;
  using Entry = Plans::value_type;

  base::Result<const Plan*> find_or_make(const Call& call, bool may_evict);
  base::Result<std::shared_ptr<const Plan>> make(const Call& call);
  void evict();
  void forget_all();
  void forget_found();

  PlanContext context_;
  std::uint64_t generation_ = 1;
  const Plan* last_used_ = nullptr;
  const Entry* last_[schedule::kCollectiveCount] = {};
  Plans plans_;
  ChoiceTable table_;  // of all ranks, if the context has one
  select::KnownChoices known_;
  std::vector<std::shared_ptr<const Plan>> replaced_;  // by settle(); operations may still use them
  // The newest plan with such programs. There are never more of them than plans.
  std::unordered_map<Call, std::weak_ptr<const Plan>, Hash, SamePrograms> with_programs_;
};

}  // namespace unisono::plan

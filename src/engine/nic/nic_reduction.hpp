// SPDX-License-Identifier: BSD-3-Clause
// NicReduction: the current operation on the trees of a group, of one rank. Several ranks of a host
// combine their vectors in shared memory first (host_reduction.hpp). The last of them to arrive
// posts the sum, and all of them poll the result where the program writes it. One operation at a
// time. After an error it is unusable. One thread at a time. Data path: no allocation, no lock,
// except for the text of an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/nic/host_reduction.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/port/tree_ports.hpp"
#include "plan/nic_call.hpp"
#include "select/nic/split_choice.hpp"

namespace unisono::engine {

// A rank, by where it is.
struct NicRank {
  int host = 0;
  int place = 0;
};

class NicReduction {
 public:
  // `ranks`: the reduction of the host's ranks; none: this rank is alone on its host. `splits`: the
  // same at all ranks.
  NicReduction(int host, std::unique_ptr<HostReduction> ranks, const select::SplitChoice& splits)
      : host_(host), ranks_(std::move(ranks)), splits_(splits), delay_(host) {}

  // The trees, in the order of the pieces, are added before the first start.
  nic::TreePorts& ports() { return ports_; }
  const nic::TreePorts& ports() const { return ports_; }

  // Posts this rank's vector. `input` may be reused at once; `output` must stay until take().
  base::Status start(const plan::NicCall& call, const void* input, void* output);
  // Whether the result is there, for take() to copy to the output.
  base::Result<bool> poll();
  base::Status take();
  // Requests packets that may be lost, if it is time to.
  base::Status repair();

  // Whether all ranks of this host have arrived at the last operation.
  bool is_host_complete() const { return ranks_ == nullptr || ranks_->is_complete(); }
  // The rank whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // Describes what the operation lacks, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

 private:
  base::Status post_sum(const nic::Contribution& own);
  nic::TreePorts::Cut cut() const;

  const int host_;
  const std::unique_ptr<HostReduction> ranks_;
  const select::SplitChoice splits_;
  nic::TreePorts ports_;
  nic_patience::RepairDelay delay_;
  plan::NicCall call_;
  void* output_ = nullptr;
  std::optional<int> mismatching_place_;
};

}  // namespace unisono::engine

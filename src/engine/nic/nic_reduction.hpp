// SPDX-License-Identifier: BSD-3-Clause
// NicReduction: the operation under way on the trees of a group, of one rank. Several ranks of a
// host combine their vectors in shared memory first (host_reduction.hpp); the last of them to come
// posts the sum, and all of them poll the result where the program writes it. One operation at a
// time. After an error it is of no use. One thread at a time. Data path: no allocation, no lock,
// but for the text of an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/nic/host_reduction.hpp"
#include "engine/nic/nic_call.hpp"
#include "engine/nic/nic_patience.hpp"
#include "nic/port/tree_ports.hpp"
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

  // Gives this rank's vector. `input` may be used again at once; `output` stays until take().
  base::Status start(const NicCall& call, const void* input, void* output);
  // Whether the result is there, for take() to copy to the output.
  base::Result<bool> poll();
  base::Status take();
  // Asks for packets that may be lost, if it is time to.
  base::Status repair();

  // Whether all ranks of this host have come to the last operation.
  bool is_host_complete() const { return ranks_ == nullptr || ranks_->is_complete(); }
  // Whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // What it waits for, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

 private:
  base::Status post_sum(const void* input);
  nic::TreePorts::Cut cut() const;

  const int host_;
  const std::unique_ptr<HostReduction> ranks_;
  const select::SplitChoice splits_;
  nic::TreePorts ports_;
  nic_patience::RepairDelay delay_;
  NicCall call_;
  void* output_ = nullptr;
  std::optional<int> mismatching_place_;
};

}  // namespace unisono::engine

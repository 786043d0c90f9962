// SPDX-License-Identifier: BSD-3-Clause
// NicReduction: one operation on the trees of a group, of one rank. Several ranks of a host combine
// their vectors in shared memory first (host_reduction.hpp). The last of them to arrive posts the
// sum, and all of them poll the result where the program writes it. A group has a few such objects,
// each for one operation in flight at a time. After an error it is unusable. One thread at a time.
// Data path: no allocation, no lock, except for the text of an error.
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
#include "nic/port/tree_vector.hpp"
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
  // This rank's host; whether the rank leads it; when it repeats a question.
  struct Rank {
    int host = 0;
    bool leads = true;
    nic_patience::BackOff::Bounds back_off = {};
  };
  // `ports` and `splits` outlive it, and are the same at all ranks. The trees, in the order of the
  // pieces, are added before the first start. `ranks`: the reduction of the host's ranks; none:
  // this rank is alone on its host.
  NicReduction(const Rank& rank, nic::TreePorts& ports, const select::SplitChoice& splits,
               std::unique_ptr<HostReduction> ranks)
      : host_(rank.host),
        leads_(rank.leads),
        ports_(ports),
        splits_(splits),
        ranks_(std::move(ranks)),
        vector_(ports),
        back_off_(rank.back_off) {}

  // Whether the ports have room for the call. With no operation in flight they have.
  bool has_room(const plan::NicCall& call) const { return ports_.has_room(cut(call)); }
  // Posts this rank's vector. `input` may be reused at once; `output` must stay until take().
  base::Status start(const plan::NicCall& call, const void* input, void* output);
  // Whether the result is there, for take() to copy to the output. If it is not, the root of an
  // operation on query repeats its question when the time has come.
  base::Result<bool> poll();
  // Until then; a time without end where no question is due.
  std::int64_t question_in_ns(std::int64_t now_ns) const;
  base::Status take();
  nic::TreeVector& vector() { return vector_; }
  const nic::TreeVector& vector() const { return vector_; }

  // Whether all ranks of this host have arrived at the operation.
  bool is_host_complete() const { return ranks_ == nullptr || ranks_->is_complete(); }
  // The rank whose call differs, after an error with Code::mismatch; none: not known here.
  std::optional<NicRank> mismatching_rank() const;
  // Describes what the operation lacks, for people: "operation 3 on host 1 lacks ...".
  std::string describe() const;

 private:
  base::Status post_sum(const nic::Contribution& own);
  nic::TreeCut cut(const plan::NicCall& call) const;
  nic::Giving giving() const { return call_.asks ? nic::Giving::on_query : nic::Giving::at_once; }

  const int host_;
  const bool leads_;
  nic::TreePorts& ports_;
  const select::SplitChoice& splits_;
  const std::unique_ptr<HostReduction> ranks_;
  nic::TreeVector vector_;
  nic_patience::BackOff back_off_;
  bool repeats_ = false;  // this rank asks in the operation
  plan::NicCall call_;
  void* output_ = nullptr;
  std::optional<int> mismatching_place_;
};

}  // namespace unisono::engine

// SPDX-License-Identifier: BSD-3-Clause
// NicLeave: how a rank leaves the NIC path, before its communicator ends. It waits until the
// operations whose calls have returned are done (decision 71), and then until no neighbour may ask
// this rank for the last result. Until then the programs of this host must answer for it. One
// thread at a time.
#pragma once

#include <cstdint>

#include "comm/nic/nic_engine.hpp"

namespace unisono::comm {

class NicLeave {
 public:
  // The engine outlives it.
  explicit NicLeave(NicEngine& engine)
      : engine_(engine), members_(engine.members_), failures_(engine.failures_) {}

  void wait_for_results();
  void wait_for_neighbours();

 private:
  bool has_results(std::int64_t waited_ns);
  void examine();
  bool may_leave() const;
  bool has_to_stay(std::int64_t waited_ns);
  void find_differences();
  template <class Turn, class Work>
  void wait(const Turn& turn, const Work& work);

  NicEngine& engine_;
  const Members& members_;
  FailureState& failures_;
};

}  // namespace unisono::comm

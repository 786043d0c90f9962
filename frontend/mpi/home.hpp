// SPDX-License-Identifier: BSD-3-Clause
// Home: the Unisono job of all ranks of MPI_COMM_WORLD. The first communicator of that size makes
// it at its first blocking collective. Communicators that come later live in it: to make one takes
// one allgather of the host MPI, or two between hosts, and no new job. A communicator of fewer
// ranks that comes before it gets a job of its own. Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "unisono/unisono.h"

namespace unisono::mpi {

// The ranks of a communicator exchange these numbers before they make a job. The numbers say
// whether all have the same home. Threads may make several communicators at once, and their order
// may differ.
struct HomeNumbers {
  std::uint64_t home = 0;      // 0: this rank has none
  std::uint64_t proposed = 0;  // the number of a home that this rank would make as its first rank
};
HomeNumbers own_home_numbers();

// A Unisono communicator, and how it ends.
class UnisonoComm {
 public:
  // Collective over the communicator whose allgather `exchange` is. `world_ranks` are its ranks in
  // MPI_COMM_WORLD. An error of Unisono's at all ranks alike.
  // In the home that this rank has. The exchange fails if it is not the home of all.
  int make_in_home(const std::vector<int>& world_ranks, const unisono_exchange_t& exchange);
  // Wherever all ranks can. `numbers` are those of all ranks.
  int make(int rank, const std::vector<int>& world_ranks, bool is_of_all_ranks,
           const std::vector<HomeNumbers>& numbers, const unisono_exchange_t& exchange);
  // Another one of the same ranks. `can`: this rank can use it; if one cannot, no rank gets it.
  int make_like(const UnisonoComm& other, int size, bool can, const unisono_exchange_t& exchange);
  // Ends this rank's use. No request is left.
  void end();
  // Ends the job if it has one of its own, with all that lives in it.
  void end_own_job();

  unisono_comm_t get() const { return comm_; }
  explicit operator bool() const { return comm_ != nullptr; }

 private:
  enum class Kind : std::uint8_t { home, derived, own_job };

  unisono_comm_t comm_ = nullptr;
  Kind kind_ = Kind::own_job;
};

// Ends the home and all that lives in it.
void end_home();

}  // namespace unisono::mpi

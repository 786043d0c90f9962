// SPDX-License-Identifier: BSD-3-Clause
#include "host/persistent_calls.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_set>

#include "host/host.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

struct Known {
  std::mutex mutex;
  std::unordered_set<Handle> all;
  std::atomic<std::size_t> count{0};  // of them
};

Known& known() {
  static Known* const kept = new Known;  // never destroyed: MPI may end after static objects
  return *kept;
}

}  // namespace

void note_persistent_by_host(Handle request) {
  if (host().calls_back()) return;  // the host does the waiting
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  kept.all.insert(request);
  kept.count = kept.all.size();
}

bool has_persistent_by_host() { return known().count.load(std::memory_order_relaxed) != 0; }

bool is_persistent_by_host(Handle request) {
  if (!has_persistent_by_host()) return false;
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  return kept.all.contains(request);
}

void forget_persistent_by_host(Handle request) {
  if (!has_persistent_by_host()) return;
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  kept.all.erase(request);
  kept.count = kept.all.size();
}

}  // namespace unisono::mpi

namespace unisono::mpi::ours {

// A program can call a function that the host MPI lacks only because the drop-in has the name.
#define UNISONO_MPI_NEIGHBOUR(name, parameters, arguments)                                 \
  int name parameters {                                                                    \
    if (host().name == nullptr) {                                                          \
      log_warning("the host MPI has no MPI_%s, and Unisono does not do this call", #name); \
      return host().constants.error_other;                                                 \
    }                                                                                      \
    const int code = host().name arguments;                                                \
    if (code == 0) note_persistent_by_host(host().handle_at(request));                     \
    return code;                                                                           \
  }
UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_NEIGHBOUR)
#undef UNISONO_MPI_NEIGHBOUR

}  // namespace unisono::mpi::ours

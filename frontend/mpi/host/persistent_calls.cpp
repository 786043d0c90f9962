// SPDX-License-Identifier: BSD-3-Clause
#include "host/persistent_calls.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "host/host.hpp"

namespace unisono::mpi {
namespace {

struct State {
  Stage stage = Stage::inactive;
  int code = 0;  // MPI error code of an ended one
};

struct Known {
  std::mutex mutex;
  std::unordered_map<Handle, State> all;
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
  kept.all[request] = {};
  kept.count = kept.all.size();
}

bool has_persistent_by_host() { return known().count.load(std::memory_order_relaxed) != 0; }

bool is_persistent_by_host(Handle request) {
  if (!has_persistent_by_host()) return false;
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  return kept.all.contains(request);
}

void note_start_by_host(Handle request) {
  if (!has_persistent_by_host()) return;
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  if (const auto found = kept.all.find(request); found != kept.all.end()) {
    found->second = {.stage = Stage::active};
  }
}

// Not MPI_Request_get_status: after it MPICH 5 and Intel MPI take an active request for inactive.
// The host tests without the lock, for it may call the program's functions.
std::optional<Stage> look_at_persistent_by_host(Handle request) {
  if (!has_persistent_by_host()) return std::nullopt;
  Known& kept = known();
  {
    const std::lock_guard lock(kept.mutex);
    const auto found = kept.all.find(request);
    if (found == kept.all.end()) return std::nullopt;
    if (found->second.stage != Stage::active) return found->second.stage;
  }
  Handle own = request;
  int flag = 0;
  const int code = host().Test(&own, &flag, host().constants.status_ignore);
  if (code == 0 && flag == 0) return Stage::active;
  const std::lock_guard lock(kept.mutex);
  kept.all[request] = {.stage = Stage::ended, .code = code};
  return Stage::ended;
}

int take_ended_by_host(Handle request) {
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  return std::exchange(kept.all[request], {}).code;
}

void forget_persistent_by_host(Handle request) {
  if (!has_persistent_by_host()) return;
  Known& kept = known();
  const std::lock_guard lock(kept.mutex);
  kept.all.erase(request);
  kept.count = kept.all.size();
}

}  // namespace unisono::mpi

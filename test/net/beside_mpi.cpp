// SPDX-License-Identifier: BSD-3-Clause
// A rank that uses Unisono beside an MPI library, which speaks with the same launcher.
// usage: beside_mpi MPI_LIBRARY before|after|never   (when MPI_Init is called: before
// unisono_init?)
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "unisono/unisono.h"

namespace {

// Calls a function of MPI; false if there is none or it fails.
template <class... Arguments>
bool call_mpi(const char* name, Arguments... arguments) {
  using Function = int (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  if (function != nullptr && function(arguments...) == 0) return true;
  std::fprintf(stderr, "%s failed\n", name);
  return false;
}

bool begin_mpi() {
  int* const count = nullptr;
  char*** const words = nullptr;
  return call_mpi("MPI_Init", count, words);
}

bool sum_is_right(unisono_comm_t world) {
  int rank = -1;
  int ranks = 0;
  std::int64_t sum = 0;
  const std::int64_t one = 1;
  if (unisono_comm_rank(world, &rank) != UNISONO_OK ||
      unisono_comm_size(world, &ranks) != UNISONO_OK ||
      unisono_allreduce(&one, &sum, 1, UNISONO_INT64, UNISONO_SUM, world) != UNISONO_OK) {
    return false;
  }
  std::printf("rank %d of %d sums %lld\n", rank, ranks, static_cast<long long>(sum));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view when = argv[2];
  if (dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (when == "before" && !begin_mpi()) return 1;
  unisono_comm_t world = nullptr;
  if (unisono_init(&world) != UNISONO_OK) {
    std::fprintf(stderr, "%s\n", unisono_last_error());
    return 1;
  }
  if (when == "after" && !begin_mpi()) return 1;
  const bool right = sum_is_right(world) && unisono_finalize(world) == UNISONO_OK;
  if (when != "never" && !call_mpi("MPI_Finalize")) return 1;
  return right ? 0 : 1;
}

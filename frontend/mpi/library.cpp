// SPDX-License-Identifier: BSD-3-Clause
#include "library.hpp"

#include <dlfcn.h>

#include <atomic>

#include "log.hpp"

namespace unisono::mpi {
namespace {

std::atomic<const Library*> in_use{nullptr};

template <class Pointer>
bool take_function(Pointer& pointer, void* from, const char* name) {
  pointer = reinterpret_cast<Pointer>(dlsym(from, name));
  return pointer != nullptr;
}

Library load() {
  Library found;
  void* const object = dlopen("libunisono.so.0", RTLD_NOW | RTLD_LOCAL);  // by our own run path
  if (object == nullptr) {
    log_warning("libunisono.so.0 cannot be loaded, all collectives go to the host MPI: %s",
                dlerror());
    return found;
  }
  found.loaded = true;
#define UNISONO_MPI_TAKE_FUNCTION(name) \
  found.loaded &= take_function(found.name, object, "unisono_" #name);
  UNISONO_MPI_LIBRARY(UNISONO_MPI_TAKE_FUNCTION)
#undef UNISONO_MPI_TAKE_FUNCTION
  if (!found.loaded) log_warning("libunisono.so.0 is of another version than the drop-in");
  return found;
}

}  // namespace

const Library& load_library() {
  static const Library loaded = load();
  if (loaded.loaded) in_use = &loaded;
  return loaded;
}

void save_profile() {
  const Library* const used = in_use;
  if (used != nullptr) used->profile_save();
}

}  // namespace unisono::mpi

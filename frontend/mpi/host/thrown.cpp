// SPDX-License-Identifier: BSD-3-Clause
#include "host/thrown.hpp"

#include <new>
#include <stdexcept>
#include <system_error>

namespace unisono::mpi {

bool is_own(const std::exception& thrown) {
  return dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr ||
         dynamic_cast<const std::length_error*>(&thrown) != nullptr ||
         dynamic_cast<const std::system_error*>(&thrown) != nullptr;
}

}  // namespace unisono::mpi

// SPDX-License-Identifier: BSD-3-Clause
// Integers: an array of counts or displacements in the program's memory. Its elements are ints, or
// in calls with large counts MPI_Count or MPI_Aint. It does not own them. Any thread.
#pragma once

#include <cstdint>

namespace unisono::mpi {

using LargeCount = std::int64_t;  // also takes an int

class Integers {
 public:
  Integers(const int* narrow) : narrow_(narrow) {}
  Integers(const std::int64_t* wide) : wide_(wide) {}

  explicit operator bool() const { return narrow_ != nullptr || wide_ != nullptr; }
  std::int64_t operator[](int index) const {
    return narrow_ != nullptr ? narrow_[index] : wide_[index];
  }
  // Whether the first ones can be counts.
  bool are_counts(int number) const {
    for (int i = 0; i < number; ++i) {
      if ((*this)[i] < 0) return false;
    }
    return true;
  }

 private:
  const int* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
};

}  // namespace unisono::mpi

// SPDX-License-Identifier: BSD-3-Clause
// Descriptor: owns one file descriptor and closes it. Move-only; one owner, so one thread at a
// time.
#pragma once

#include <utility>

namespace unisono::base {

class Descriptor {
 public:
  Descriptor() = default;
  // Takes ownership of `number`; a negative one stands for none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.number_, -1));
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  // Closes what is owned and owns `number` instead. Keeps errno.
  void reset(int number = -1) noexcept;
  // Hands the descriptor to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace unisono::base

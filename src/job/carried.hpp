// SPDX-License-Identifier: BSD-3-Clause
// Carried: the operations of a communicator, which another thread than its own may progress.
#pragma once

namespace unisono::job {

class Carried {
 public:
  virtual ~Carried() = default;
  // One turn; false if nothing is left to do.
  bool take_turn() {
    const Turn turn(this);
    return carry_on();
  }
  // Whether the calling thread is in a turn of any.
  static bool is_thread_in_turn() { return in_turn_ != nullptr; }

 protected:
  // Whether it is in one of this.
  bool is_in_turn() const { return in_turn_ == this; }
  virtual bool carry_on() = 0;

 private:
  // A function of the program may begin another turn within one.
  class Turn {
   public:
    explicit Turn(const Carried* carried) : outer_(in_turn_) { in_turn_ = carried; }
    ~Turn() { in_turn_ = outer_; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const Carried* outer_;
  };
  static inline thread_local const Carried* in_turn_ = nullptr;
};

}  // namespace unisono::job

// SPDX-License-Identifier: BSD-3-Clause
// Carried: the operations of a communicator, which another thread than its own may progress.
#pragma once

namespace unisono::job {

class Carried {
 public:
  virtual ~Carried() = default;
  // One turn; false if nothing is left to do.
  bool take_turn() {
    const Mark mark;
    return carry_on();
  }
  // Whether the calling thread is in a turn.
  static bool is_in_turn() { return is_in_turn_; }

 protected:
  virtual bool carry_on() = 0;

 private:
  struct Mark {
    Mark() { is_in_turn_ = true; }
    ~Mark() { is_in_turn_ = false; }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
  };
  static inline thread_local bool is_in_turn_ = false;
};

}  // namespace unisono::job

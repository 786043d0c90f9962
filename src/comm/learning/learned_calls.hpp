// SPDX-License-Identifier: BSD-3-Clause
// LearnedCalls: a communicator as its learner sees it. It gives the learner the plans, an exchange
// and the execution of calls. As the communicator's functions: one thread at a time.
#pragma once

#include <memory>

#include "comm/learning/learner.hpp"

namespace unisono::comm {

class Communicator;

class LearnedCalls {
 public:
  explicit LearnedCalls(Communicator& communicator) : communicator_(communicator) {}

  // UNISONO_LEARN.
  static bool are_wanted(const base::Settings& settings);
  // Null: algorithms are not learned.
  std::unique_ptr<Learner> make_learner();
  // The communicator's own; null: none.
  Learner* learner();

 private:
  Communicator& communicator_;
};

}  // namespace unisono::comm

// SPDX-License-Identifier: BSD-3-Clause
// Answers: the answers of a rank's children in the repair tree to one question of an origin, how
// far they have come, and whether a member below them is lost. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace unisono::reliable {

class Answers {
 public:
  void clear() { all_.clear(); }
  struct Answer {
    std::uint64_t value = 0;   // the least that a living rank has come to
    bool passes_over = false;  // a lost member, of which the question does not know
    bool operator==(const Answer&) const = default;
  };
  // A child may say several things; the furthest holds, and a loss stays.
  void note(int child, const Answer& answer);
  // Those of the children that have not answered.
  std::vector<int> missing(std::vector<int> children) const;
  // The worst of them and `own`; nullopt while one of `children` has not answered.
  std::optional<Answer> worst(std::span<const int> children, const Answer& own) const;

 private:
  struct Said {
    int child;
    Answer answer;
  };
  const Answer* find(int child) const;

  std::vector<Said> all_;
};

}  // namespace unisono::reliable

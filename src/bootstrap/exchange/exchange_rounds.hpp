// SPDX-License-Identifier: BSD-3-Clause
// Rounds over an allgather that the caller of the library provides. In each round every rank gives
// a text or an error. If any rank gives an error, all ranks return one, and further rounds are not
// done: so no rank waits in a round that another rank has left out. What arrives comes from
// outside: it is bounded and checked. Control path; blocks in the caller's function. One thread at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace unisono::bootstrap {

// Gathers `bytes` bytes of every rank, in the order of ranks, at `output`. 0: success.
using Allgather = std::function<int(const void* input, void* output, std::size_t bytes)>;

class ExchangeRounds {
 public:
  static constexpr std::size_t kMostTextBytes = 800;  // of a text or a message

  // Where an allgather that fails at one rank may have succeeded at others, or never does.
  enum class Failures : std::uint8_t { at_some_ranks, everywhere };

  ExchangeRounds(Allgather allgather, int rank, int ranks,
                 Failures failures = Failures::at_some_ranks)
      : allgather_(std::move(allgather)), rank_(rank), ranks_(ranks), failures_(failures) {}

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // The texts of all ranks. A rank that gives an error gets the same one back, and the others that
  // of the lowest such rank. Errors: argument (ranks or sizes do not fit together), unsupported
  // (another version), system (the allgather failed); all further calls return the same error.
  base::Result<std::vector<std::string>> gather(const base::Result<std::string>& own);
  // The same for ranks that have nothing to say but whether they can go on.
  base::Status agree(const base::Status& own);
  Failures failures() const { return failures_; }
  // After an error: whether all ranks have one, because it went over the exchange or the exchange
  // failed everywhere.
  bool have_all_an_error() const { return have_all_an_error_; }

 private:
  base::Result<std::vector<std::string>> exchange(const base::Result<std::string>& own);

  Allgather allgather_;
  int rank_;
  int ranks_;
  Failures failures_;
  std::uint32_t round_ = 0;
  std::optional<base::Error> error_;
  bool have_all_an_error_ = false;
};

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// Board: what a launcher keeps for the ranks of a job. Each rank leaves notes, and after a fence
// all can read them. So can others, depending on the launcher: its notes travel in the clear, and
// who may ask for them is its own matter. Nothing secret belongs there. Control path; blocks, with
// a deadline wherever other ranks are waited for. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace unisono::bootstrap {

enum class BoardKind { none, pmi, pmix };
const char* board_name(BoardKind kind);

struct BoardOptions {
  BoardKind kind = BoardKind::none;
  int descriptor = -1;  // pmi: PMI_FD, which stays the launcher's
  int rank = 0;
  int ranks = 1;
  std::int64_t timeout_ns = 0;  // of each wait
};

class Board {
 public:
  // Of a note, so that every launcher takes it (PMI has lines of 1024).
  static constexpr std::size_t kMostNoteBytes = 768;

  Board() = default;
  virtual ~Board() = default;  // takes leave of the launcher
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // `key`: letters and digits. `note`: printable characters, without blanks. Once a key.
  virtual base::Status put(std::string_view key, std::string_view note) = 0;
  // Returns when all ranks of the job have called it. Errors: timeout (some have not), rank_lost
  // (the launcher has gone), state (it does not say what its protocol has it say).
  virtual base::Status fence() = 0;
  // What a rank has put before the last fence. Errors: as of fence(); state, if it has not.
  virtual base::Result<std::string> get(int rank, std::string_view key) = 0;
};

// Errors: unsupported (the launcher's library or descriptor is not there, or of another version),
// and those of fence().
base::Result<std::unique_ptr<Board>> open_board(const BoardOptions& options);

}  // namespace unisono::bootstrap

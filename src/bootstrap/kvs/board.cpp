// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/board.hpp"

#include <dlfcn.h>

#include "bootstrap/launchers/pmi_board.hpp"
#include "bootstrap/launchers/pmix_board.hpp"

namespace unisono::bootstrap {

const char* board_name(BoardKind kind) {
  switch (kind) {
    case BoardKind::none:
      return "none";
    case BoardKind::pmi:
      return "PMI";
    case BoardKind::pmix:
      return "PMIx";
  }
  return "unknown";
}

base::Result<std::unique_ptr<Board>> open_board(const BoardOptions& options) {
  const bool shared = dlsym(RTLD_DEFAULT, "MPI_Initialized") != nullptr;
  switch (options.kind) {
    case BoardKind::pmi:
      return PmiBoard::open(options, shared);
    case BoardKind::pmix:
      return open_pmix_board(options, shared);
    case BoardKind::none:
      break;
  }
  return base::Error{base::Code::unsupported, "the launcher keeps nothing for its ranks"};
}

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// Successor: makes the new communicator of a shrink. For Communicator's own files.
#pragma once

#include <memory>
#include <optional>

#include "comm/agreement/shrink.hpp"
#include "comm/communicator.hpp"

namespace unisono::comm {

class Successor {
 public:
  explicit Successor(Communicator& old) : old_(old) {}

  // One turn of the shrink; empty: not yet.
  base::Result<std::optional<std::unique_ptr<Communicator>>> step(Shrink& shrink) const;

 private:
  std::unique_ptr<Communicator> build(const Shrink::Outcome& outcome) const;

  Communicator& old_;
};

}  // namespace unisono::comm

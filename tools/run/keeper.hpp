// SPDX-License-Identifier: BSD-3-Clause
// Keeper: a small process that survives the launcher's death, and then kills the process groups of
// the ranks. The kernel's parent-death signal alone would reach the ranks' first processes only,
// not their children (a shell's program). Of the launcher's descriptors it holds one pipe only.
#pragma once

#include <sys/types.h>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace unisono::tools {

class Keeper {
 public:
  // Forks it. Call before the ranks are started.
  static base::Result<Keeper> start();
  Keeper(Keeper&&) noexcept;
  Keeper& operator=(Keeper&&) = delete;
  // Ends it: the launcher has seen to its ranks itself.
  ~Keeper();

  // Adds a rank's process group.
  void watch(pid_t group) const;

 private:
  Keeper(pid_t pid, base::Descriptor pipe) : pid_(pid), pipe_(std::move(pipe)) {}

  pid_t pid_;
  base::Descriptor pipe_;
};

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// Job: the work of `unisono run` between its command line and its exit status. One poll loop, one
// thread. It hosts the rendezvous, forwards output, input and signals, and waits for the end of
// every rank. A rank that fails starts the end of the job, unless it is to keep going. The others
// have the grace time to notice and report by themselves; then they get SIGTERM, then SIGKILL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace unisono::tools {

struct JobOptions {
  int ranks = 1;
  std::vector<std::string> command;  // program and arguments
  bool bind = true;             // give each rank its share of the cores, where there are enough
  bool tag = false;             // put "[rank] " before each line of output
  bool keep_going = false;      // a rank that fails does not end the others
  std::int64_t grace_ns = 0;    // for the other ranks after one has failed
  std::int64_t timeout_ns = 0;  // of the whole job; 0: none
  std::string profile;          // UNISONO_PROFILE of the ranks; empty: as in the environment
};

// Exit statuses besides those of the ranks.
inline constexpr int kExitNoOutput = 2;   // the ranks' output cannot be written
inline constexpr int kExitTimeout = 124;  // as timeout(1)

// Runs the job to its end and returns the exit status of `unisono run`. It is 0 if all ranks
// returned 0, else that of the rank that failed first. With keep_going, ranks that were killed
// count only if no rank exited. Errors occur only before the ranks run; `exit_status` is then the
// exit status. Once per process: it takes over signals.
base::Result<int> run_job(const JobOptions& options, int& exit_status);

}  // namespace unisono::tools

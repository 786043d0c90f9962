// SPDX-License-Identifier: BSD-3-Clause
// Job: what `unisono run` does between its command line and its exit status. One poll loop, one
// thread: it hosts the rendezvous, forwards output, input and signals, and sees every rank to its
// end. A rank that fails starts the end of the job, unless it is to keep going: the others have the
// grace time to notice and report by themselves, then SIGTERM, then SIGKILL.
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
};

// Exit statuses besides those of the ranks.
inline constexpr int kExitTimeout = 124;  // as timeout(1)

// Runs the job to its end and gives the exit status of `unisono run`: 0 if all ranks gave 0, else
// that of the rank that failed first; with keep_going, ranks that were killed count only if no rank
// exited. Errors are for what went wrong before the ranks ran;
// `exit_status` is then what to leave with. Once per process: it takes over signals.
base::Result<int> run_job(const JobOptions& options, int& exit_status);

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are real processes, forked from the test. Each gets its rank from its
// environment and joins at a socket with a unique name. The output of a rank comes back over a
// pipe. A rank that hangs is ended by its own alarm, all end with the test's process, and the
// destructor kills, by their ids, the remaining ones. The test must not have threads. Linux only.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "unisono/unisono.h"

namespace unisono::harness {

// In a child. Expectations may be used; a failed one makes the rank's outcome unclean.
class ProcessRank {
 public:
  ProcessRank(int rank_of_job, int ranks_of_job, int pipe)
      : rank(rank_of_job), ranks(ranks_of_job), pipe_(pipe) {}

  // To the parent; `line` without newlines.
  void say(const std::string& line) const;

  const int rank;
  const int ranks;
  unisono_comm_t world = nullptr;

 private:
  int pipe_;
};

// How a rank ended and all it said.
struct Outcome {
  bool exited = false;
  int status = -1;  // of exit, or the signal
  std::vector<std::string> lines;

  bool clean() const { return exited && status == 0; }
  std::string text() const;
};

class ProcessJob {
 public:
  using Body = std::function<void(ProcessRank&)>;
  struct Options {
    std::map<std::string, std::string> environment;  // for every rank
    bool joins = true;  // unisono_init before the body and unisono_finalize after it
  };

  ProcessJob(int ranks, const Body& body, const Options& options);
  ProcessJob(int ranks, const Body& body) : ProcessJob(ranks, body, Options{}) {}
  ~ProcessJob();
  ProcessJob(const ProcessJob&) = delete;
  ProcessJob& operator=(const ProcessJob&) = delete;

  void signal(int rank, int number) const;
  // Until the rank has said another line, which stays among its outcome's; false if it ended.
  bool await_line(int rank);
  void await_line_of_all();
  // Until the rank has ended.
  const Outcome& wait(int rank);
  // Waits for every rank and expects each but `except` to be clean.
  void expect_all_clean(int except = -1);

  pid_t pid(int rank) const { return children_[static_cast<std::size_t>(rank)].pid; }
  int ranks() const { return static_cast<int>(children_.size()); }
  // Unique to this job; part of the name of the socket at which the ranks meet.
  const std::string& token() const { return token_; }

 private:
  struct Child {
    pid_t pid = -1;
    bool reaped = false;
    base::Descriptor pipe;
    std::string partial;
    std::size_t awaited = 0;
    Outcome outcome;
  };
  [[noreturn]] void run_child(int rank, pid_t parent, int pipe, const Body& body,
                              const Options& options) const;
  bool read_more(Child& child);

  std::string token_;
  std::vector<Child> children_;
};

std::vector<std::string> unisono_files_in_shm();
// Expects that nothing of the job remains on this machine: no children of this process and no
// socket of its name. /dev/shm may have no file that refers to it or is not in `shm_before`.
testing::AssertionResult nothing_left(const ProcessJob& job,
                                      const std::vector<std::string>& shm_before);

}  // namespace unisono::harness

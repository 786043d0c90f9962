// SPDX-License-Identifier: BSD-3-Clause
// RankProcess: one rank of `unisono run`, from fork to the end of its process group. Each rank
// leads a process group of its own. So it and all its children can be ended together, and the
// terminal's ^C reaches it exactly once, through the launcher. An ended rank stays a zombie until
// reap(), which keeps its process group's number from reuse. Main thread only.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/settings/settings.hpp"

namespace unisono::tools {

struct SpawnPlan {
  std::vector<std::string> command;  // program and arguments
  base::Environment environment;     // of the launcher; the rank's own variables are added
  int ranks = 1;
  std::string rendezvous;
  std::string job_key;
  bool stdin_is_terminal = false;  // then rank 0 reads from a pipe that the launcher fills
  bool bind = true;                // give each rank its share of the cores, where there are enough
  rlimit descriptors{};            // the limit that the launcher found
};

class RankProcess {
 public:
  // Starts a rank; returns when its program runs. If it cannot run, `exit_status` becomes that of a
  // shell (127: not found, 126: cannot be executed).
  static base::Result<RankProcess> spawn(const SpawnPlan& plan, int rank, int& exit_status);

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }

  // Looks whether it has ended, without waiting. True once: when that is new.
  bool notice_end();
  bool ended() const { return ended_; }
  bool failed() const { return ended_ && exit_status_ != 0; }
  bool was_killed() const { return killed_; }
  // 0 to 255; 128 + signal if killed.
  int exit_status() const { return exit_status_; }
  // "exited with status 3", "was killed by signal 9 (Killed)"
  const std::string& how() const { return how_; }

  // To the rank's first process; to all of its process group.
  void signal(int number) const;
  void signal_group(int number) const;
  // Kills the rest of the group, waits for its end, and frees its number.
  void reap();

  base::Descriptor output;  // reading ends, non-blocking; invalid after their end
  base::Descriptor error;
  base::Descriptor input;  // rank 0 with a terminal: writing end, non-blocking

 private:
  int rank_ = 0;
  pid_t pid_ = 0;
  bool ended_ = false;
  bool killed_ = false;
  int exit_status_ = 0;
  std::string how_;
};

}  // namespace unisono::tools

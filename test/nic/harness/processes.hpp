// SPDX-License-Identifier: BSD-3-Clause
// Processes on test hosts: daemons, and clients of other users. They are killed with the object
// that stands for them, so that none outlives its test.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nic/harness/hosts.hpp"

namespace unisono::nic::test {

class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&& other) noexcept {
    end(SIGKILL);
    pid_ = std::exchange(other.pid_, -1);
    return *this;
  }
  ~Child() { end(SIGKILL); }

  pid_t pid() const { return pid_; }
  // Its exit status; 128 + N if it was killed by signal N.
  int wait();
  int end(int signal);
  // Returns when it has stopped, wherever it was.
  void stop() const;

 private:
  pid_t pid_ = -1;
};

// unisonod on that host. `said`: its output when it serves, or has given up.
struct StartedDaemon {
  Child process;
  std::string said;
};
StartedDaemon start_daemon(const Hosts& hosts, int host, const std::string& socket_path,
                           const std::vector<std::string>& more = {});

// A process of that user on that host; its exit status is what the body returns.
Child run_as(uid_t user, const Hosts& hosts, int host, const std::function<int()>& body);
// ... with these supplementary groups.
Child run_as(uid_t user, const Hosts& hosts, int host, const std::vector<gid_t>& groups,
             const std::function<int()>& body);

}  // namespace unisono::nic::test

// SPDX-License-Identifier: BSD-3-Clause
// Test hosts (tools/hosts) for a GoogleTest: TestHosts makes a set with a name of its own, which
// ends with the test's process at the latest, and runs bodies on its hosts, each in a forked
// process that can talk to the test line by line. Needs root: a test begins with
//   const auto hosts = TestHosts::up(4);
//   if (!hosts.reason_to_skip().empty()) GTEST_SKIP() << hosts.reason_to_skip();
// The test must not have threads. Link unisono_tools.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/prng.hpp"
#include "hosts/enter.hpp"
#include "hosts/keeper.hpp"
#include "hosts/plan.hpp"

namespace unisono::harness {

// Letters that no other set uses, so that tests can run at the same time.
inline std::string unique_hosts_name() {
  static base::Prng prng(static_cast<std::uint64_t>(base::now_ns()) ^
                         (static_cast<std::uint64_t>(getpid()) << 32));
  std::string name(1, 't');
  while (name.size() < tools::kMostSetName) name += static_cast<char>('a' + prng.below(26));
  return name;
}

// The test's end, or a body's end, of the line between them.
class Line {
 public:
  Line(base::Descriptor reading, base::Descriptor writing)
      : reading_(std::move(reading)), writing_(std::move(writing)) {}

  void say(const std::string& text) const {
    const std::string line = text + "\n";
    if (write(writing_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      ADD_FAILURE() << "nobody hears: " << text;
    }
  }
  // The next line; empty at the end.
  std::string hear() const {
    std::string line;
    char c = 0;
    for (;;) {
      const ssize_t count = read(reading_.get(), &c, 1);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0 || c == '\n') return line;
      line += c;
    }
  }

 private:
  base::Descriptor reading_;
  base::Descriptor writing_;
};

// A body that runs on a host. The destructor kills it if it was not waited for.
class HostProcess {
 public:
  HostProcess(pid_t pid, Line line) : pid_(pid), line_(std::move(line)) {}
  HostProcess(HostProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), line_(std::move(other.line_)) {}
  HostProcess& operator=(HostProcess&&) = delete;
  ~HostProcess() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  const Line& line() const { return line_; }
  Line take_line() { return std::move(line_); }
  pid_t pid() const { return pid_; }
  // Waits for its end: 0 if no expectation failed in it; 128 + signal.
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
  Line line_;
};

// Forks a process that calls `body` with its end of the line.
template <class Body>
HostProcess start_process(const Body& body) {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  EXPECT_EQ(pipe2(down.data(), O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(up.data(), O_CLOEXEC), 0);
  base::Descriptor child_reads(down[0]);
  base::Descriptor child_writes(up[1]);
  base::Descriptor parent_reads(up[0]);
  base::Descriptor parent_writes(down[1]);
  std::fflush(nullptr);
  const pid_t pid = fork();
  EXPECT_GE(pid, 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    parent_reads.reset();
    parent_writes.reset();
    const Line line(std::move(child_reads), std::move(child_writes));
    body(line);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  return HostProcess(pid, Line(std::move(parent_reads), std::move(parent_writes)));
}

class TestHosts {
 public:
  using Body = std::function<void(const Line&)>;

  static TestHosts up(tools::HostsPlan plan, pid_t owner = getpid()) {
    plan.name = unique_hosts_name();
    return TestHosts(tools::make_hosts(plan, owner));
  }
  static TestHosts up(int hosts) {
    tools::HostsPlan plan;
    plan.hosts = hosts;
    return up(plan);
  }
  TestHosts(TestHosts&& other) noexcept : made_(std::move(other.made_)) {
    other.made_ = base::Error{base::Code::state, "moved"};
  }
  TestHosts& operator=(TestHosts&&) = delete;
  ~TestHosts() {
    if (!made_.ok()) return;
    const base::Status removed = tools::remove_hosts(*made_);
    EXPECT_TRUE(removed.ok()) << removed.error().message;
  }

  // Empty if there are hosts. That they could not be made for another reason than that this user
  // or this machine may not is a failure.
  std::string reason_to_skip() const {
    if (made_.ok()) return "";
    EXPECT_EQ(made_.error().code, base::Code::unsupported) << made_.error().message;
    return made_.error().message;
  }
  const tools::HostsRecord& record() const { return *made_; }
  int size() const { return static_cast<int>(record().hosts.size()); }

  // Forks a process on the host that runs the body; its end of the line is the body's argument.
  HostProcess start(int host, const Body& body) const {
    return start_process([&](const Line& line) {
      const base::Status joined = tools::join_processes(record());
      ASSERT_TRUE(joined.ok()) << joined.error().message;
      run_in_child(host, line, body);
    });
  }
  // The same, and waits for it.
  int run(int host, const Body& body) const { return start(host, body).wait(); }

 private:
  explicit TestHosts(base::Result<tools::HostsRecord> made) : made_(std::move(made)) {}

  // A process changes its pid namespace for its children only; hence one between.
  void run_in_child(int host, const Line& line, const Body& body) const {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const tools::HostEntry& entry = record().hosts[static_cast<std::size_t>(host)];
      const base::Status entered = tools::become_process_of(entry);
      EXPECT_TRUE(entered.ok()) << entered.error().message;
      if (entered.ok()) body(line);
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    std::fflush(nullptr);
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }

  base::Result<tools::HostsRecord> made_;
};

}  // namespace unisono::harness

// SPDX-License-Identifier: BSD-3-Clause
#include "process/ranks.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>

#include "harness/outcome.hpp"

namespace unisono::harness {
namespace {

// A rank that lives longer hangs; far above the time of any test, under a sanitizer too.
constexpr unsigned kHangSeconds = 120;

void set_environment(int rank, int ranks, const std::string& token,
                     const std::map<std::string, std::string>& extra) {
  setenv("UNISONO_RANK", std::to_string(rank).c_str(), 1);
  setenv("UNISONO_SIZE", std::to_string(ranks).c_str(), 1);
  setenv("UNISONO_RENDEZVOUS", ("unix:@" + token).c_str(), 1);
  for (const auto& [name, value] : extra) setenv(name.c_str(), value.c_str(), 1);
}

void run_body(ProcessRank& self, const ProcessJob::Body& body, bool joins) {
  SCOPED_TRACE(fmt::format("rank {} of {}", self.rank, self.ranks));
  if (joins) {
    ASSERT_TRUE(succeeded(unisono_init(&self.world)));
  }
  try {
    body(self);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the body threw: " << error.what();
  }
  // After an error that the body expected, this repeats it or not; it must not hang.
  if (joins) unisono_finalize(self.world);
}

}  // namespace

void ProcessRank::say(const std::string& line) const {
  const std::string text = line + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t length = write(pipe_, text.data() + written, text.size() - written);
    if (length < 0 && errno != EINTR) return;  // the parent has gone, and this process goes with it
    if (length > 0) written += static_cast<std::size_t>(length);
  }
}

std::string Outcome::text() const {
  std::string all =
      exited ? fmt::format("exit status {}", status) : fmt::format("signal {}", status);
  if (!exited && status == SIGALRM) all += " (it hung)";
  for (const std::string& line : lines) all += "; " + line;
  return all;
}

ProcessJob::ProcessJob(int ranks, const Body& body, const Options& options)
    : children_(static_cast<std::size_t>(ranks)) {
  static int jobs = 0;
  token_ = fmt::format("unisono-test-{}-{}", getpid(), ++jobs);
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    Child& child = children_[static_cast<std::size_t>(rank)];
    int ends[2];
    if (pipe(ends) != 0) {
      ADD_FAILURE() << "pipe failed";
      return;
    }
    child.pid = fork();
    if (child.pid == 0) {
      close(ends[0]);
      run_child(rank, parent, ends[1], body, options);
    }
    child.pipe = base::Descriptor(ends[0]);
    close(ends[1]);
    EXPECT_GT(child.pid, 0) << "fork failed";
  }
}

void ProcessJob::run_child(int rank, pid_t parent, int pipe, const Body& body,
                           const Options& options) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  alarm(kHangSeconds);
  const int ranks = static_cast<int>(children_.size());
  set_environment(rank, ranks, token_, options.environment);
  ProcessRank self(rank, ranks, pipe);
  run_body(self, body, options.joins);
  std::fflush(stdout);
  std::fflush(stderr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

ProcessJob::~ProcessJob() {
  for (Child& child : children_) {
    if (child.reaped || child.pid <= 0) continue;
    kill(child.pid, SIGKILL);
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void ProcessJob::signal(int rank, int number) const {
  const Child& child = children_[static_cast<std::size_t>(rank)];
  ASSERT_FALSE(child.reaped) << "rank " << rank << " ended before it was signalled";
  ASSERT_EQ(kill(child.pid, number), 0);
}

bool ProcessJob::read_more(Child& child) {
  char bytes[4096];
  const ssize_t length = read(child.pipe.get(), bytes, sizeof bytes);
  if (length < 0) return errno == EINTR;
  if (length == 0) return false;
  child.partial.append(bytes, static_cast<std::size_t>(length));
  for (std::size_t end; (end = child.partial.find('\n')) != std::string::npos;) {
    child.outcome.lines.push_back(child.partial.substr(0, end));
    child.partial.erase(0, end + 1);
  }
  return true;
}

bool ProcessJob::await_line(int rank) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  while (child.outcome.lines.size() <= child.awaited) {
    if (!read_more(child)) return false;
  }
  ++child.awaited;
  return true;
}

void ProcessJob::await_line_of_all() {
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_TRUE(await_line(rank)) << "rank " << rank << " ended: " << wait(rank).text();
  }
}

const Outcome& ProcessJob::wait(int rank) {
  Child& child = children_[static_cast<std::size_t>(rank)];
  if (child.reaped) return child.outcome;
  while (read_more(child)) {
  }
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  child.reaped = true;
  child.outcome.exited = WIFEXITED(status);
  child.outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  return child.outcome;
}

void ProcessJob::expect_all_clean(int except) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const Outcome& outcome = wait(rank);
    if (rank == except) continue;
    EXPECT_TRUE(outcome.clean()) << "rank " << rank << ": " << outcome.text();
  }
}

std::vector<std::string> unisono_files_in_shm() {
  std::vector<std::string> names;
  std::error_code ignored;  // a machine may have no /dev/shm at all
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find("unisono") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

testing::AssertionResult nothing_left(const ProcessJob& job,
                                      const std::vector<std::string>& shm_before) {
  if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) {
    return testing::AssertionFailure() << "a child process is left";
  }
  if (unisono_files_in_shm() != shm_before) {
    return testing::AssertionFailure() << "/dev/shm has changed";
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find(job.token()) != std::string::npos) {
      return testing::AssertionFailure() << "a socket is left: " << line;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace unisono::harness

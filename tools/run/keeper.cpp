// SPDX-License-Identifier: BSD-3-Clause
#include "run/keeper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace unisono::tools {
namespace {

// Process groups go through the pipe. Writes of this size are never split (pipe(7)), so whole
// records arrive.
[[noreturn]] void keep(int pipe) {
  std::vector<pid_t> groups;
  pid_t record = 0;
  for (;;) {
    const ssize_t count = read(pipe, &record, sizeof(record));
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof(record)) break;
    groups.push_back(record);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

void send(int pipe, pid_t record) {
  ssize_t written = 0;
  do {
    written = write(pipe, &record, sizeof(record));
  } while (written < 0 && errno == EINTR);
}

}  // namespace

base::Result<Keeper> Keeper::start() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::system_error("pipe", errno);
  }
  base::Descriptor reading(ends[0]);
  base::Descriptor writing(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return base::Error{base::Code::resources, std::string("fork: ") + std::strerror(errno)};
  }
  if (pid == 0) {
    // Away from the terminal's signals, and from descriptors that others wait on for their end.
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    writing.reset();  // or the end of the launcher would not be the end of the pipe
    dup2(reading.get(), STDIN_FILENO);
    close_range(STDIN_FILENO + 1, ~0U, 0);
    keep(STDIN_FILENO);
  }
  return Keeper(pid, std::move(writing));
}

Keeper::Keeper(Keeper&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}

Keeper::~Keeper() {
  if (pid_ < 0) return;
  // Before the pipe ends. Nothing asks it: it may have been stopped.
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Keeper::watch(pid_t group) const { send(pipe_.get(), group); }

}  // namespace unisono::tools

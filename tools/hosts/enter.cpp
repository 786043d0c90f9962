// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/enter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "hosts/process_descriptor.hpp"
#include "run/output.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalled = 128;

// The target of a child's output; invalid: the caller's. Without input the child reads nothing.
struct Streams {
  Descriptor output;
  Descriptor error;
  bool input = true;
};

// Too late for the parent-death signal if the parent is gone; its number is none in the set.
void die_with(const Descriptor& parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd ended{parent.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) _exit(kSignalled + SIGKILL);
}

// Runs in the child.
[[noreturn]] void become(const HostEntry& host, const std::vector<std::string>& command,
                         const Streams& streams, const Descriptor& parent) {
  die_with(parent);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (!streams.input) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  if (streams.output.valid()) dup2(streams.output.get(), STDOUT_FILENO);
  if (streams.error.valid()) dup2(streams.error.get(), STDERR_FILENO);
  if (const Status entered = become_process_of(host); !entered.ok()) {
    fmt::print(stderr, "unisono hosts exec: {}\n", entered.error().message);
    std::fflush(nullptr);
    _exit(1);
  }
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  const int reason = errno;
  fmt::print(stderr, "unisono hosts exec: cannot start {} on {}: {}\n", words[0], host.name,
             std::strerror(reason));
  std::fflush(nullptr);
  _exit(reason == ENOENT ? kNotFound : kNotExecutable);
}

Result<pid_t> spawn(const HostEntry& host, const std::vector<std::string>& command,
                    const Streams& streams) {
  const Descriptor parent = open_process(getpid());
  if (!parent.valid()) return base::system_error("pidfd_open", errno);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return base::system_error("fork", errno);
  if (child == 0) become(host, command, streams, parent);
  return child;
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

// Waits for the child and forwards signals to it. Signals from a terminal are not forwarded,
// because they go to the whole foreground process group, to which the child belongs.
int wait_and_forward(pid_t child, const sigset_t& handled) {
  for (;;) {
    siginfo_t got{};
    const int number = sigwaitinfo(&handled, &got);
    if (number == SIGCHLD) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return shell_status(status);
    } else if (number > 0 && got.si_code != SI_KERNEL) {
      kill(child, number);
    }
  }
}

// One stream of a host's output on its way to ours.
struct Stream {
  Descriptor from;
  std::FILE* to;
  LineBuffer lines;
};

Status open_streams(const std::string& tag, std::vector<Stream>& streams, Streams& child) {
  for (const bool error : {false, true}) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("pipe", errno);
    streams.push_back({Descriptor(ends[0]), error ? stderr : stdout, LineBuffer(tag, true)});
    (error ? child.error : child.output).reset(ends[1]);
  }
  child.input = false;
  return base::success();
}

void forward(Stream& stream) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(stream.from.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  std::string out;
  if (count > 0) {
    stream.lines.take({buffer.data(), static_cast<std::size_t>(count)}, out);
  } else {
    stream.lines.finish(out);
    stream.from.reset();
  }
  std::fwrite(out.data(), 1, out.size(), stream.to);
  std::fflush(stream.to);
}

void forward_all(std::vector<Stream>& streams) {
  std::vector<pollfd> poll_set(streams.size());
  for (;;) {
    bool open = false;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      poll_set[i] = {streams[i].from.get(), POLLIN, 0};  // poll() passes over negative ones
      open |= streams[i].from.valid();
    }
    if (!open) return;
    if (poll(poll_set.data(), poll_set.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (poll_set[i].revents != 0) forward(streams[i]);
    }
  }
}

}  // namespace

Status join_processes(const HostsRecord& record) {
  struct stat mine {};
  if (stat("/proc/self/ns/pid", &mine) != 0) return base::system_error("/proc/self/ns/pid", errno);
  if (mine.st_ino == record.inside) return base::success();
  const Descriptor keeper = open_process(record.keeper);
  if (!keeper.valid() || setns(keeper.get(), CLONE_NEWPID) != 0) {
    return Error{Code::system,
                 fmt::format("cannot join the processes of hosts {}: {}; from a host only those of "
                             "its own set can be reached",
                             record.name, std::strerror(errno))};
  }
  return base::success();
}

Status become_process_of(const HostEntry& host) {
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::current_path(unknown);
  const Descriptor holder = open_process(host.pid);
  // A process that shares its working directory with another may not change its mounts.
  if (!holder.valid() || unshare(CLONE_FS) != 0 ||
      setns(holder.get(), CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS) != 0) {
    return base::system_error(fmt::format("cannot enter host {}", host.name), errno);
  }
  if (chdir(folder.c_str()) != 0) return base::system_error(folder.string(), errno);
  return base::success();
}

Result<int> run_on_host(const HostsRecord& record, const HostEntry& host,
                        const std::vector<std::string>& command) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&handled, number);
  }
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, it would take the exit status with it
  UNISONO_TRY(join_processes(record));
  UNISONO_ASSIGN(const pid_t child, spawn(host, command, {}));
  return wait_and_forward(child, handled);
}

Result<int> run_on_all_hosts(const HostsRecord& record, const std::vector<std::string>& command) {
  ::signal(SIGCHLD, SIG_DFL);
  UNISONO_TRY(join_processes(record));
  std::vector<Stream> streams;
  std::vector<pid_t> children;
  for (const HostEntry& host : record.hosts) {
    Streams child;
    UNISONO_TRY(open_streams(fmt::format("[{}] ", host.name), streams, child));
    UNISONO_ASSIGN(const pid_t pid, spawn(host, command, child));
    children.push_back(pid);
  }
  forward_all(streams);
  int result = 0;
  for (const pid_t child : children) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (result == 0) result = shell_status(status);
  }
  return result;
}

}  // namespace unisono::tools

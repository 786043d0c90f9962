// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/batch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/descriptor.hpp"
#include "hosts/process_descriptor.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;

constexpr int kShellNotFound = 127;  // the exit status of a shell
constexpr int kNoNamespace = 126;

// Runs in the child.
[[noreturn]] void become(const char* program, const Descriptor& input, const Descriptor& output,
                         pid_t network_of) {
  if (network_of != 0) {
    const Descriptor process = open_process(network_of);
    if (!process.valid() || setns(process.get(), CLONE_NEWNET) != 0) _exit(kNoNamespace);
  }
  if (dup2(input.get(), STDIN_FILENO) < 0 || dup2(output.get(), STDOUT_FILENO) < 0 ||
      dup2(output.get(), STDERR_FILENO) < 0) {
    _exit(kNoNamespace);
  }
  execlp(program, program, "-batch", "-", static_cast<char*>(nullptr));
  _exit(kShellNotFound);
}

// The first lines of the program's output, joined to one.
std::string said(const Descriptor& output) {
  std::array<char, 512> text{};
  const ssize_t count = pread(output.get(), text.data(), text.size(), 0);
  std::string out(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  for (char& c : out) {
    if (c == '\n') c = ' ';
  }
  return out;
}

}  // namespace

base::Status run_batch(const char* program, const std::string& commands, pid_t network_of) {
  if (commands.empty()) return base::success();
  const Descriptor input(memfd_create("commands", MFD_CLOEXEC));
  const Descriptor output(memfd_create("output", MFD_CLOEXEC));
  if (!input.valid() || !output.valid()) return base::system_error("memfd_create", errno);
  if (pwrite(input.get(), commands.data(), commands.size(), 0) !=
      static_cast<ssize_t>(commands.size())) {
    return base::system_error("write of a batch of commands", errno);
  }
  const pid_t child = fork();
  if (child < 0) return base::system_error("fork", errno);
  if (child == 0) become(program, input, output, network_of);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return base::system_error("waitpid", errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return base::success();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kShellNotFound) {
    return Error{Code::unsupported,
                 fmt::format("{} is not there: install Debian's iproute2", program)};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNamespace) {
    return Error{Code::system, fmt::format("{} could not enter a host's network", program)};
  }
  return Error{Code::system, fmt::format("{} failed: {}", program, said(output))};
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "run/rank_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;

// A killed process may hang in the kernel (a dead file server); init gets it when we leave.
constexpr std::int64_t kReapNs = 2 * base::kSecond;

struct Pipe {
  Descriptor reading;
  Descriptor writing;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Error{Code::resources,
                 fmt::format("pipe: {}; the limit is ulimit -n", std::strerror(errno))};
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

void set_nonblocking(const Descriptor& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

// "NAME=value" strings for one rank.
std::vector<std::string> environment_of(const SpawnPlan& plan, int rank) {
  base::Environment environment = plan.environment;
  const auto set = [&environment](base::Setting id, std::string value) {
    environment[std::string(base::setting_row(id).name)] = std::move(value);
  };
  set(base::Setting::rank, std::to_string(rank));
  set(base::Setting::size, std::to_string(plan.ranks));
  set(base::Setting::rendezvous, plan.rendezvous);
  set(base::Setting::job_key, plan.job_key);
  std::vector<std::string> result;
  for (const auto& [name, value] : environment) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// The rank's share of the usable cores: as many for each, next to each other. nullopt where ranks
// outnumber cores, which nothing but the scheduler can then share out.
std::optional<cpu_set_t> core_share(int ranks, int rank) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return std::nullopt;
  const int share = CPU_COUNT(&usable) / ranks;
  if (share == 0) return std::nullopt;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  int seen = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    if (seen / share == rank) CPU_SET(core, &mine);
    ++seen;
  }
  return mine;
}

struct ChildPlan {
  pid_t launcher;
  int input;  // -1: keep the launcher's
  int output;
  int error;
  rlimit descriptors;
  const cpu_set_t* cores;  // null: the launcher's
  char* const* arguments;
  char* const* environment;
};

// Runs in the child: becomes the program, or returns with errno.
void become_program(const ChildPlan& plan) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  // Too late for the signal if the launcher is gone already.
  if (getppid() != plan.launcher) _exit(128 + SIGKILL);
  if (plan.input >= 0 && dup2(plan.input, STDIN_FILENO) < 0) return;
  if (dup2(plan.output, STDOUT_FILENO) < 0 || dup2(plan.error, STDERR_FILENO) < 0) return;
  setrlimit(RLIMIT_NOFILE, &plan.descriptors);
  // Where the kernel refuses, the rank runs unbound: slower, not wrong.
  if (plan.cores != nullptr) sched_setaffinity(0, sizeof *plan.cores, plan.cores);
  for (const int ignored : {SIGPIPE, SIGTTIN}) ::signal(ignored, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(plan.arguments[0], plan.arguments, plan.environment);
}

// Waits until the child runs its program (0) or says why it cannot (errno).
int exec_outcome(const Descriptor& reading) {
  int error_number = 0;
  ssize_t count = 0;
  do {
    count = read(reading.get(), &error_number, sizeof(error_number));
  } while (count < 0 && errno == EINTR);
  return count == sizeof(error_number) ? error_number : 0;
}

}  // namespace

Result<RankProcess> RankProcess::spawn(const SpawnPlan& plan, int rank, int& exit_status) {
  exit_status = 1;
  UNISONO_ASSIGN(Pipe output, make_pipe());
  UNISONO_ASSIGN(Pipe error, make_pipe());
  UNISONO_ASSIGN(Pipe outcome, make_pipe());
  Pipe input;
  if (rank != 0) {
    input.reading.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  } else if (plan.stdin_is_terminal) {
    UNISONO_ASSIGN(input, make_pipe());
  }
  std::vector<std::string> command = plan.command;
  std::vector<std::string> environment = environment_of(plan, rank);
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const std::optional<cpu_set_t> cores = plan.bind ? core_share(plan.ranks, rank) : std::nullopt;
  const ChildPlan child{
      getpid(),         input.reading.get(),       output.writing.get(), error.writing.get(),
      plan.descriptors, cores ? &*cores : nullptr, arguments.data(),     variables.data()};
  RankProcess process;
  process.rank_ = rank;
  process.pid_ = fork();
  if (process.pid_ < 0) {
    return Error{Code::resources, fmt::format("cannot start rank {} of {}: fork: {}", rank,
                                              plan.ranks, std::strerror(errno))};
  }
  if (process.pid_ == 0) {
    become_program(child);
    const int error_number = errno;
    [[maybe_unused]] const ssize_t told =
        write(outcome.writing.get(), &error_number, sizeof(error_number));
    _exit(127);
  }
  outcome.writing.reset();
  if (const int error_number = exec_outcome(outcome.reading); error_number != 0) {
    waitpid(process.pid_, nullptr, 0);
    exit_status = error_number == ENOENT ? 127 : 126;
    return Error{Code::argument, fmt::format("cannot start {}: {}", plan.command[0],
                                             std::generic_category().message(error_number))};
  }
  process.output = std::move(output.reading);
  process.error = std::move(error.reading);
  process.input = std::move(input.writing);
  set_nonblocking(process.output);
  set_nonblocking(process.error);
  if (process.input.valid()) set_nonblocking(process.input);
  return process;
}

bool RankProcess::notice_end() {
  if (ended_) return false;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  ended_ = true;
  if (info.si_code == CLD_EXITED) {
    exit_status_ = info.si_status;
    how_ = fmt::format("exited with status {}", exit_status_);
  } else {
    killed_ = true;
    exit_status_ = 128 + info.si_status;
    how_ = fmt::format("was killed by signal {} ({}{})", info.si_status, strsignal(info.si_status),
                       info.si_code == CLD_DUMPED ? ", core dumped" : "");
  }
  return true;
}

void RankProcess::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

void RankProcess::signal_group(int number) const { kill(-pid_, number); }

void RankProcess::reap() {
  signal_group(SIGKILL);
  const std::int64_t deadline_ns = base::now_ns() + kReapNs;
  // The rank and the processes that it left behind; those are our children since the rank ended
  // (subreaper).
  for (;;) {
    const pid_t reaped = waitpid(-pid_, nullptr, WNOHANG);
    if (reaped < 0 && errno != EINTR) return;
    if (reaped != 0) continue;
    if (base::now_ns() >= deadline_ns) return;
    const timespec pause{0, base::kMillisecond};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace unisono::tools

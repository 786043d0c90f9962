// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/descriptor.hpp"
#include "hosts/answer.hpp"
#include "hosts/batch.hpp"
#include "hosts/host.hpp"
#include "hosts/process_descriptor.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

// The descriptors of the caller that the keeper holds.
struct Inheritance {
  Descriptor lock;    // of the set's file
  Descriptor owner;   // invalid: none
  Descriptor answer;  // for the answer to the waiting caller
};

Status limit_rates(const HostsPlan& plan, const std::vector<pid_t>& pids) {
  Status limited = run_batch("tc", switch_rates(plan));
  for (const pid_t pid : pids) {
    if (!limited.ok()) break;
    limited = run_batch("tc", host_rates(plan), pid);
  }
  if (limited.ok() || limited.error().message.find("qdisc kind is unknown") == std::string::npos) {
    return limited;
  }
  return Error{Code::unsupported,
               "this kernel has no token bucket filter (tbf), so no link can be limited to a rate: "
               "leave --rate out, or load the module sch_tbf"};
}

// Where the kernel has that module it asks the firewall about each frame; a switch has none. It
// costs processor time only, so whether it can be left out is not looked at.
void leave_out_firewall() {
  for (const char* const tables : {"arptables", "iptables", "ip6tables"}) {
    const std::string setting = fmt::format("/proc/sys/net/bridge/bridge-nf-call-{}", tables);
    const Descriptor file(open(setting.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.valid()) continue;
    [[maybe_unused]] const ssize_t written = write(file.get(), "0", 1);
  }
}

// Runs in process 1 of the set, whose network is still empty.
Result<std::vector<pid_t>> build(const HostsPlan& plan) {
  std::vector<pid_t> pids;
  const std::string names = hosts_file(plan);
  leave_out_firewall();
  for (int host = 0; host < plan.hosts; ++host) {
    UNISONO_ASSIGN(const pid_t pid, start_host(host_name(plan, host), names));
    pids.push_back(pid);
  }
  UNISONO_TRY(run_batch("ip", switch_links(plan, pids)));
  UNISONO_TRY(run_batch("bridge", switch_routes(plan)));
  for (int host = 0; host < plan.hosts; ++host) {
    UNISONO_TRY(run_batch("ip", host_links(host), pids[static_cast<std::size_t>(host)]));
  }
  if (plan.rate_bits != 0) UNISONO_TRY(limit_rates(plan, pids));
  return pids;
}

// The machine's number of this process: the /proc that is mounted here is still the machine's.
Result<pid_t> outer_pid() {
  std::array<char, 16> text{};
  const ssize_t count = readlink("/proc/self", text.data(), text.size());
  pid_t pid = 0;
  if (count < 0 || std::from_chars(text.data(), text.data() + count, pid).ec != std::errc()) {
    return base::system_error("/proc/self", errno);
  }
  return pid;
}

Status write_record(const HostsPlan& plan, const std::vector<pid_t>& pids, const Descriptor& file) {
  HostsRecord record;
  UNISONO_ASSIGN(record.keeper, outer_pid());
  struct stat inside {};
  if (stat("/proc/self/ns/pid", &inside) != 0)
    return base::system_error("/proc/self/ns/pid", errno);
  record.inside = inside.st_ino;
  record.shape = plan.shape == HostsShape::tree ? "tree" : "star";
  record.rate = plan.rate_bits == 0 ? "none" : format_rate(plan.rate_bits);
  for (int host = 0; host < plan.hosts; ++host) {
    record.hosts.push_back(
        {host_name(plan, host), host_address(host), pids[static_cast<std::size_t>(host)]});
  }
  const std::string text = format_record(record);
  if (pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return base::system_error("write of the record of the hosts", errno);
  }
  return base::success();
}

Status set_up(const HostsPlan& plan, const Descriptor& lock) {
  UNISONO_ASSIGN(const std::vector<pid_t> pids, build(plan));
  return write_record(plan, pids, lock);
}

// Leaves the caller's terminal and folder, so that they are not held for hours.
void detach() {
  setsid();
  ::signal(SIGCHLD, SIG_DFL);  // ignored, it would lose the exit statuses of our commands
  prctl(PR_SET_NAME, "unisono-hosts");
  [[maybe_unused]] const int changed = chdir("/");
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, number);
  close(null);
}

[[noreturn]] void keep(const HostsPlan& plan, Inheritance mine) {
  detach();
  const Status made = set_up(plan, mine.lock);
  if (!send_answer(mine.answer, made) || !made.ok()) {
    forget_hosts(plan.name);
    _exit(1);
  }
  mine.answer.reset();
  ::signal(SIGCHLD, SIG_IGN);  // process 1 inherits orphans and does not wait for them
  pollfd owner{mine.owner.get(), POLLIN, 0};
  while (poll(&owner, 1, -1) <= 0) {  // forever, without an owner
  }
  forget_hosts(plan.name);
  _exit(0);
}

// Runs in a child of the caller, because the new namespaces apply to that process's next child.
[[noreturn]] void start_keeper(const HostsPlan& plan, Inheritance mine) {
  if (unshare(CLONE_NEWPID | CLONE_NEWNET) != 0) {
    send_answer(mine.answer,
                Error{Code::unsupported,
                      fmt::format("this machine does not let us make namespaces: unshare: {}",
                                  std::strerror(errno))});
    forget_hosts(plan.name);
    _exit(1);
  }
  const pid_t keeper = fork();
  if (keeper == 0) keep(plan, std::move(mine));
  if (keeper < 0) forget_hosts(plan.name);
  _exit(keeper < 0 ? 1 : 0);
}

// Keeps only the needed descriptors: a pipe of the caller that stayed open here would never end.
void close_others(const Inheritance& mine) {
  std::array<int, 3> kept{mine.lock.get(), mine.owner.get(), mine.answer.get()};
  std::sort(kept.begin(), kept.end());
  int next = STDERR_FILENO + 1;
  for (const int number : kept) {
    if (number > next) {
      close_range(static_cast<unsigned>(next), static_cast<unsigned>(number - 1), 0);
    }
    if (number >= next) next = number + 1;
  }
  close_range(static_cast<unsigned>(next), ~0U, 0);
}

}  // namespace

Result<HostsRecord> make_hosts(const HostsPlan& plan, pid_t owner) {
  UNISONO_TRY(check_plan(plan));
  if (geteuid() != 0) {
    return Error{Code::unsupported,
                 "test hosts are network namespaces, which only root can make: run it as root"};
  }
  Inheritance mine;
  if (owner != 0) {
    mine.owner = open_process(owner);
    if (!mine.owner.valid()) return base::system_error(fmt::format("process {}", owner), errno);
  }
  UNISONO_ASSIGN(AnswerPipe answer, make_answer_pipe());
  mine.answer = std::move(answer.writing);
  UNISONO_ASSIGN(mine.lock, claim_hosts(plan.name));
  const pid_t child = fork();
  if (child < 0) return base::system_error("fork", errno);
  if (child == 0) {
    close_others(mine);
    start_keeper(plan, std::move(mine));
  }
  mine.answer.reset();
  mine.lock.reset();  // the keeper holds it
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  UNISONO_TRY(receive_answer(answer.reading, fmt::format("the keeper of hosts {}", plan.name)));
  return find_hosts(plan.name);
}

}  // namespace unisono::tools

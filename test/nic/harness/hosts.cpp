// SPDX-License-Identifier: BSD-3-Clause
// Namespaces are made by threads that leave at once; `ip` configures them from the inside.
#include "nic/harness/hosts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "harness/machine_interfaces.hpp"

namespace unisono::nic::test {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;

// A new network namespace, held by its descriptor; invalid, with errno in `error`, if not.
Descriptor make_namespace(int& error) {
  Descriptor made;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) == 0) made.reset(open("/proc/thread-self/ns/net", O_RDONLY));
    error = made.valid() ? 0 : errno;
  }).join();
  return made;
}

// virtio_net tells its device of a group some time after a process has joined it, and a result that
// comes before is lost. Ranks ask for it, but some tests here have exact numbers of packets.
constexpr const char* kTakeAllMulticasts = "link set u0 allmulticast on\n";

// Feeds `lines` to `ip -batch -` in the namespace. 127: there is no ip.
int run_ip(int network, const std::string& lines) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    if (setns(network, CLONE_NEWNET) != 0 || dup2(ends[0], 0) < 0) _exit(126);
    execlp("ip", "ip", "-batch", "-", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[0]);
  // Short enough for the pipe: no SIGPIPE and no wait without a reader.
  const bool written =
      write(ends[1], lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
  close(ends[1]);
  int status = 0;
  if (child < 0 || !written || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

base::Status status_of_ip(int status) {
  if (status == 127) return Error{Code::unsupported, "there is no `ip` (Debian: iproute2)"};
  if (status != 0) return Error{Code::system, fmt::format("`ip` failed with status {}", status)};
  return base::success();
}

// As in `unisono hosts`: if the kernel passes each frame to the firewall, a bridge does not work as
// a switch.
void leave_out_firewall(int network) {
  std::thread([network] {
    if (setns(network, CLONE_NEWNET) != 0) return;
    for (const char* const tables : {"arptables", "iptables", "ip6tables"}) {
      const std::string setting = fmt::format("/proc/sys/net/bridge/bridge-nf-call-{}", tables);
      const Descriptor file(open(setting.c_str(), O_WRONLY | O_CLOEXEC));
      if (!file.valid()) continue;
      [[maybe_unused]] const ssize_t written = write(file.get(), "0", 1);
    }
  }).join();
}

// Until the kernel says that the link works at both ends.
void wait_for_link() {
  const Descriptor question(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "u0");
  while (ioctl(question.get(), SIOCGIFFLAGS, &request) == 0 &&
         (request.ifr_flags & IFF_RUNNING) == 0) {
    std::this_thread::yield();
  }
}

}  // namespace

base::Result<std::unique_ptr<Hosts>> Hosts::make(int count) {
  std::unique_ptr<Hosts> hosts(new Hosts);
  UNISONO_TRY(hosts->start(count));
  return hosts;
}

base::Status Hosts::start(int count) {
  UNISONO_TRY(start_links(count));
  int status = 0;
  for (int host = 0; host < count && status == 0; ++host) {
    status =
        run_ip(hosts_[static_cast<std::size_t>(host)].get(),
               fmt::format("link set lo up\naddress add 10.0.0.{}/24 dev u0\nlink set u0 up\n{}",
                           host + 1, has_native_hosts() ? kTakeAllMulticasts : ""));
  }
  UNISONO_TRY(status_of_ip(status));
  run([](int) { wait_for_link(); });
  return base::success();
}

base::Status Hosts::start_links(int count) {
  std::string lines = "link set lo up\n";
  if (!has_native_hosts()) {
    lines += "link add br0 type bridge stp_state 0 mcast_snooping 0\nlink set br0 up\n";
  } else if (harness::machine_interfaces() < count) {
    return Error{Code::unsupported,
                 fmt::format("the machine has {} interfaces, and {} hosts take one each",
                             harness::machine_interfaces(), count)};
  }
  int error = 0;
  switch_ = make_namespace(error);
  for (int host = 0; host < count && error == 0; ++host) {
    hosts_.push_back(make_namespace(error));
    if (has_native_hosts()) {
      lines += harness::move_interface(
          host, fmt::format("/proc/{}/fd/{}", getpid(), hosts_.back().get()), "u0");
      continue;
    }
    lines += fmt::format(
        "link add p{0} type veth peer name u0 address 02:00:00:00:00:{1:02x} netns "
        "/proc/{2}/fd/{3}\n"
        "link set p{0} master br0\nlink set p{0} up\n",
        host, host + 1, getpid(), hosts_.back().get());
  }
  if (error != 0) {
    return Error{error == EPERM ? Code::unsupported : Code::system,
                 fmt::format("cannot make a network namespace: {}", std::strerror(error))};
  }
  if (has_native_hosts()) {
    const Descriptor machine(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    return status_of_ip(run_ip(machine.get(), lines));
  }
  leave_out_firewall(switch_.get());
  return status_of_ip(run_ip(switch_.get(), lines));
}

void Hosts::enter(int host) const {
  if (setns(hosts_[static_cast<std::size_t>(host)].get(), CLONE_NEWNET) != 0) std::abort();
}

void Hosts::run(const std::function<void(int)>& body) const {
  std::vector<std::thread> threads;
  for (int host = 0; host < count(); ++host) {
    threads.emplace_back([this, host, &body] {
      enter(host);
      body(host);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

bool has_native_hosts() { return harness::machine_interfaces() > 0; }

DeviceOptions host_options() {
  DeviceOptions options;
  options.interface = "u0";
  if (has_native_hosts()) options.mode = Mode::native;
  return options;
}

}  // namespace unisono::nic::test

// SPDX-License-Identifier: BSD-3-Clause
#include "nic/nic_status.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/descriptor.hpp"
#include "nic/loader/device.hpp"
#include "nic/loader/kernel.hpp"

namespace unisono::tools {
namespace {

// The kernel's name of the initial user namespace (PROC_USER_INIT_INO).
constexpr const char* kFirstUserNamespace = "user:[4026531837]";

// Headers of older kernels lack the last ones.
struct Privilege {
  unsigned number;
  const char* name;
};
constexpr std::array<Privilege, 3> kNeeded = {
    {{39, "CAP_BPF"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {38, "CAP_PERFMON"}}};

// The output of a program; empty if it cannot be executed.
std::string output_of(std::string program, std::string argument) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const base::Descriptor reading(ends[0]);
  base::Descriptor writing(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  char* const words[] = {program.data(), argument.data(), nullptr};
  pid_t child = -1;
  const int outcome = posix_spawn(&child, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  writing.reset();
  if (outcome != 0) return "";
  std::string out;
  char part[256];
  ssize_t length = 0;
  while ((length = read(reading.get(), part, sizeof part)) > 0) {
    out.append(part, static_cast<std::size_t>(length));
  }
  waitpid(child, nullptr, 0);
  return out;
}

// Beside this program, as it is built, or in sbin, as it is installed.
std::string find_daemon() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  for (const char* const place : {"unisonod", "../sbin/unisonod"}) {
    const auto file = (self.parent_path() / place).lexically_normal();
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::uint64_t effective_privileges() {
  std::ifstream stream("/proc/self/status");
  for (std::string line; std::getline(stream, line);) {
    constexpr std::string_view kHead = "CapEff:";
    if (line.starts_with(kHead)) return std::stoull(line.substr(kHead.size()), nullptr, 16);
  }
  return 0;
}

std::string program_answer(const Capability& capability) {
  if (capability.daemon.empty())
    return "no: unisonod is neither beside this program nor in ../sbin";
  if (capability.has_program) return fmt::format("yes, in {}", capability.daemon);
  return fmt::format("no: {} was built without clang or libbpf", capability.daemon);
}

std::string kernel_answer(const std::string& release) {
  const std::optional<bool> suffices = nic::kernel_suffices(release);
  if (!suffices) return fmt::format("unknown: {}; it takes Linux 6.6 or newer", release);
  return fmt::format("{}, Linux {}; it takes 6.6 or newer", *suffices ? "yes" : "no", release);
}

std::string privilege_answer(const Capability& capability) {
  const std::vector<std::string> missing = missing_privileges(capability);
  if (!missing.empty()) {
    return fmt::format("no, you lack {}; to use a daemon takes none", fmt::join(missing, ", "));
  }
  if (capability.in_user_namespace) {
    return "no, a user namespace's root may not load programs; to use a daemon takes none";
  }
  return "yes, you may start unisonod; to use a daemon takes none";
}

// Whether unisonod can serve it, and how.
std::string usable_text(const nic::Interface& interface) {
  const std::string why_not = why_unusable(interface);
  if (!why_not.empty()) return "no: " + why_not;
  if (interface.driver == "veth") return "yes, in generic mode: its frames are socket buffers";
  return "yes, in native mode if its driver can, otherwise in generic mode";
}

std::string groups_text(const nic::ServiceStatus& status) {
  std::string out =
      fmt::format("  groups: {} of all users, {} KiB\n", status.groups, status.bytes / 1024);
  if (status.retained_bytes != 0) {
    out += fmt::format("  ended groups that processes still have mapped: {} KiB\n",
                       status.retained_bytes / 1024);
  }
  for (const nic::GroupLine& group : status.own_groups) {
    out += fmt::format(
        "    job {:08x} communicator {}: rank {}, {} children, {} KiB, process {} of user {}\n",
        group.job, group.communicator, group.rank, group.children, group.bytes / 1024,
        group.process, group.user);
  }
  return out + fmt::format("  you may have {} more groups and {} KiB\n", status.served.groups_left,
                           status.served.bytes_left / 1024);
}

std::string service_counters_text(const nic::ServiceStatus& status) {
  std::string out = "  service:\n";
  nic::ServiceCounters::each(status.service,
                             [&out](const char* name, const char*, std::uint64_t value) {
                               out += fmt::format("    {}: {}\n", name, value);
                             });
  return out;
}

std::string interface_text(const nic::ServiceStatus& status) {
  const nic::Served& served = status.served;
  std::string out = fmt::format("  interface: {} ({}), {} mode\n", served.interface, served.driver,
                                served.native != 0 ? "native" : "generic");
  out += fmt::format("    address: {} port {}, {}\n", nic::ipv4_text(served.own.ipv4),
                     ntohs(served.own.port), nic::mac_text(served.own.mac));
  out += "    packets:\n";
  for (std::size_t i = 0; i < status.counters.size(); ++i) {
    out += fmt::format("      {}: {}\n", nic::counter_name(static_cast<unisono_nic_counter>(i)),
                       status.counters[i]);
  }
  return out;
}

}  // namespace

std::vector<std::string> missing_privileges(const Capability& capability) {
  const auto has = [&](unsigned number) { return (capability.privileges >> number & 1) != 0; };
  std::vector<std::string> missing;
  for (const Privilege& each : kNeeded) {
    // CAP_SYS_ADMIN includes the capabilities that were split from it.
    if (!has(each.number) && !has(CAP_SYS_ADMIN)) missing.emplace_back(each.name);
  }
  return missing;
}

std::string why_unusable(const nic::Interface& interface) {
  if (!interface.ethernet) return "it is no Ethernet interface";
  if (!interface.up) return "it is down";
  if (interface.ipv4 == 0) return "it has no IPv4 address";
  if (interface.mtu >= nic::kLeastMtu) return "";
  return fmt::format("it carries {} bytes (its MTU), and packets have up to {}", interface.mtu,
                     nic::kLeastMtu);
}

Capability read_capability() {
  Capability capability;
  capability.daemon = find_daemon();
  if (!capability.daemon.empty()) {
    const std::string said = output_of(capability.daemon, "--version");
    capability.has_program = said.find("NIC program: built in") != std::string::npos;
  }
  utsname name = {};
  capability.kernel = uname(&name) == 0 ? name.release : "not told";
  capability.privileges = effective_privileges();
  std::error_code error;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/user", error);
  capability.in_user_namespace = !error && space != kFirstUserNamespace;
  return capability;
}

std::string capability_text(const Capability& capability, const std::string& path, bool serves) {
  std::string out = "capability:\n";
  out += fmt::format("  NIC program: {}\n", program_answer(capability));
  out += fmt::format("  kernel: {}\n", kernel_answer(capability.kernel));
  out += fmt::format("  privilege: {}\n", privilege_answer(capability));
  out += fmt::format("  daemon: {}, at {}\n", serves ? "yes, one serves" : "no, none serves", path);
  return out;
}

std::string interfaces_text(std::span<const nic::Interface> interfaces) {
  std::string out = "interfaces:\n";
  if (interfaces.empty()) out += "  none but the loopback\n";
  for (const nic::Interface& interface : interfaces) {
    out += fmt::format("  {}:\n", interface.name);
    out += fmt::format("    driver: {}\n", interface.driver.empty() ? "none" : interface.driver);
    if (interface.ipv4 != 0) {
      out += fmt::format("    address: {}/{}\n", nic::ipv4_text(interface.ipv4),
                         std::popcount(interface.mask));
    }
    out += fmt::format("    usable: {}\n", usable_text(interface));
  }
  return out;
}

std::string service_text(const std::string& path,
                         const base::Result<std::vector<nic::ServiceStatus>>& all) {
  if (!all.ok()) return fmt::format("unisonod: none\n  because: {}\n", all.error().message);
  const nic::ServiceStatus& first = all->front();
  std::string out = "unisonod:\n";
  out += fmt::format("  socket: {}\n", path);
  out += fmt::format("  process: {}, {} connections\n", first.process, first.connections);
  out += groups_text(first) + service_counters_text(first);
  for (const nic::ServiceStatus& status : *all) out += interface_text(status);
  return out;
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "nic/harness/kernel_objects.hpp"

#include <linux/bpf.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "base/descriptor.hpp"
#include "nic/program/tables.h"

namespace unisono::nic::test {
namespace {

// enum bpf_attach_type of Linux 6.6; older headers lack them.
constexpr std::uint32_t kTcxIngress = 46;
constexpr std::uint32_t kTcxEgress = 47;

int programs_on(std::uint32_t place) {
  bpf_attr question = {};
  question.query.target_fd = if_nametoindex("u0");  // one place with target_ifindex
  question.query.attach_type = place;
  if (syscall(SYS_bpf, BPF_PROG_QUERY, &question, sizeof question) != 0) return -1;
  return static_cast<int>(question.query.prog_cnt);
}

std::string output_of(const char* command) {
  std::string text;
  FILE* const pipe = popen(command, "r");
  if (pipe == nullptr) return "no pipe";
  char part[512];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  return pclose(pipe) == 0 ? text : text + " (" + command + " failed)";
}

bool exists(bpf_cmd command, std::uint32_t id) {
  bpf_attr question = {};
  question.map_id = id;  // one place with prog_id and link_id
  const auto found = static_cast<int>(syscall(SYS_bpf, command, &question, sizeof question));
  if (found >= 0) close(found);
  return found >= 0;
}

}  // namespace

int programs_on_egress() { return programs_on(kTcxEgress); }
int programs_on_ingress() { return programs_on(kTcxIngress); }

std::string attached_to_u0() {
  const std::string shown =
      output_of("ip -o link show dev u0 2>&1") + output_of("tc qdisc show dev u0 2>&1");
  std::string attached;
  for (const std::string_view word : {"xdp", "clsact", "ingress", "failed"}) {
    if (shown.find(word) != std::string::npos) attached += std::string(word) + " in: " + shown;
  }
  if (programs_on_egress() != 0) attached += "programs on egress ";
  if (programs_on_ingress() != 0) attached += "programs on ingress ";
  return attached;
}

KernelObjects objects_of(pid_t process) {
  KernelObjects objects;
  const auto folder = "/proc/" + std::to_string(process) + "/fdinfo";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string line;
    const auto take = [&line](std::string_view head, std::vector<std::uint32_t>& ids) {
      if (line.starts_with(head)) {
        ids.push_back(static_cast<std::uint32_t>(std::stoul(line.substr(head.size()))));
      }
    };
    while (std::getline(file, line)) {
      take("map_id:", objects.maps);
      take("prog_id:", objects.programs);
      take("link_id:", objects.links);
    }
  }
  return objects;
}

ProcessState state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  ProcessState state;
  if (name_end == std::string::npos) return state;
  std::istringstream rest(line.substr(name_end + 1));
  rest >> state.state >> state.parent;
  return state;
}

std::uint64_t context_switches_of(pid_t process) {
  std::uint64_t sum = 0;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      const std::size_t name = line.find("voluntary_ctxt_switches:");  // and nonvoluntary ones
      if (name != std::string::npos) sum += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

pid_t child_of(pid_t process) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto other = static_cast<pid_t>(std::stol(name));
    if (state_of(other).parent == process) return other;
  }
  return -1;
}

bool detach_program(pid_t daemon, std::size_t number) {
  std::vector<std::uint32_t> links = objects_of(daemon).links;
  std::ranges::sort(links);
  if (number >= links.size()) return false;
  bpf_attr question = {};
  question.link_id = links[number];
  const base::Descriptor link(
      static_cast<int>(syscall(SYS_bpf, BPF_LINK_GET_FD_BY_ID, &question, sizeof question)));
  question = {};
  question.link_detach.link_fd = static_cast<std::uint32_t>(link.get());
  return link.valid() && syscall(SYS_bpf, BPF_LINK_DETACH, &question, sizeof question) == 0;
}

bool map_exists(std::uint32_t map) { return exists(BPF_MAP_GET_FD_BY_ID, map); }

bool has_armed_waiter(pid_t daemon) {
  for (const std::uint32_t map : objects_of(daemon).maps) {
    bpf_attr question = {};
    question.map_id = map;
    const base::Descriptor opened(
        static_cast<int>(syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &question, sizeof question)));
    bpf_map_info info = {};
    question = {};
    question.info.bpf_fd = static_cast<std::uint32_t>(opened.get());
    question.info.info_len = sizeof info;
    question.info.info = reinterpret_cast<std::uintptr_t>(&info);
    if (!opened.valid() ||
        syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &question, sizeof question) != 0 ||
        std::string_view(info.name) != "unisono_slots") {
      continue;
    }
    for (std::uint32_t index = 0; index < info.max_entries; ++index) {
      unisono_nic_slot slot = {};
      question = {};
      question.map_fd = static_cast<std::uint32_t>(opened.get());
      question.key = reinterpret_cast<std::uintptr_t>(&index);
      question.value = reinterpret_cast<std::uintptr_t>(&slot);
      const bool read = syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &question, sizeof question) == 0;
      if (read && slot.waiting != 0) return true;
    }
  }
  return false;
}

bool any_exists(const KernelObjects& objects) {
  const auto any = [](bpf_cmd command, const std::vector<std::uint32_t>& ids) {
    return std::ranges::any_of(ids, [command](std::uint32_t id) { return exists(command, id); });
  };
  return any(BPF_MAP_GET_FD_BY_ID, objects.maps) || any(BPF_PROG_GET_FD_BY_ID, objects.programs) ||
         any(BPF_LINK_GET_FD_BY_ID, objects.links);
}

}  // namespace unisono::nic::test

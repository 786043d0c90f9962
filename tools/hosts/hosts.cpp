// SPDX-License-Identifier: BSD-3-Clause
// unisono hosts: test hosts in network namespaces of this machine, for developers and tests. This
// file is the command line; hosts/keeper.hpp explains what a set of hosts is and why it leaves
// nothing behind.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/prng.hpp"
#include "commands.hpp"
#include "hosts/enter.hpp"
#include "hosts/keeper.hpp"
#include "hosts/plan.hpp"
#include "hosts/registry.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

constexpr const char* kDefaultName = "h";
constexpr const char* kEveryHost = "all";

struct HostsArguments {
  int hosts = 0;
  std::string name;
  std::string shape = "star";
  std::string rate;
  int owner = 0;
  bool all = false;
  bool shell = false;
  std::string unused;
};

int report(const char* command, const Error& error) {
  fmt::print(stderr, "unisono hosts {}: {}\n", command, error.message);
  return error.code == Code::argument ? kExitUsage : kExitFailure;
}

std::string random_name() {
  base::Prng prng(static_cast<std::uint64_t>(base::now_ns()) ^
                  static_cast<std::uint64_t>(getpid()));
  std::string name(kDefaultName);
  while (name.size() < kMostSetName) name += static_cast<char>('a' + prng.below(26));
  return name;
}

// Without a name, the set gets the short default name if it is free, otherwise a unique one.
Result<HostsRecord> make_named_hosts(HostsPlan& plan, pid_t owner) {
  const bool any = plan.name.empty();
  if (any) plan.name = kDefaultName;
  Result<HostsRecord> made = make_hosts(plan, owner);
  if (made.ok() || !any || made.error().code != Code::state) return made;
  plan.name = random_name();
  return make_hosts(plan, owner);
}

int up(const HostsArguments& arguments) {
  HostsPlan plan;
  plan.name = arguments.name;
  plan.hosts = arguments.hosts;
  plan.shape = arguments.shape == "tree" ? HostsShape::tree : HostsShape::star;
  if (!arguments.rate.empty()) {
    const Result<std::int64_t> rate = parse_rate(arguments.rate);
    if (!rate.ok()) return report("up", rate.error());
    plan.rate_bits = *rate;
  }
  const Result<HostsRecord> made = make_named_hosts(plan, arguments.owner);
  if (!made.ok()) return report("up", made.error());
  for (const HostEntry& host : made.value().hosts) fmt::print("{} {}\n", host.name, host.address);
  return kExitSuccess;
}

// "h3" is of the set "h"; "all" of the named set, or of the only one.
Result<HostsRecord> set_of(const HostsArguments& arguments, const std::string& host) {
  if (host == kEveryHost) return find_hosts(arguments.name);
  return find_hosts(host.substr(0, host.find_first_of("0123456789")));
}

std::vector<std::string> shell_command(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return {"/bin/sh", "-c", line};
}

Result<int> exec(const HostsArguments& arguments, std::vector<std::string> words) {
  if (!words.empty() && words.front().starts_with('-')) {
    return Error{Code::argument,
                 fmt::format("unknown option {} (see 'unisono hosts exec --help')", words.front())};
  }
  if (words.size() < 2) {
    return Error{Code::argument,
                 "HOST or COMMAND is missing: say where to run what, as in unisono hosts exec h1 "
                 "hostname (see 'unisono hosts exec --help')"};
  }
  if (geteuid() != 0) {
    return Error{Code::unsupported, "only root can enter a host's namespaces: run it as root"};
  }
  const std::string name = words.front();
  words.erase(words.begin());
  if (words.front() == "--" && words.size() > 1) words.erase(words.begin());
  if (arguments.shell) words = shell_command(words);
  UNISONO_ASSIGN(const HostsRecord record, set_of(arguments, name));
  if (name == kEveryHost) return run_on_all_hosts(record, words);
  for (const HostEntry& host : record.hosts) {
    if (host.name == name) return run_on_host(record, host, words);
  }
  return Error{Code::argument,
               fmt::format("there is no host {}: the set {} has {} to {}", name, record.name,
                           record.hosts.front().name, record.hosts.back().name)};
}

Status down(const HostsArguments& arguments) {
  if (geteuid() != 0) return Error{Code::unsupported, "only root can end hosts: run it as root"};
  if (arguments.all) {
    UNISONO_ASSIGN(const std::vector<HostsRecord> records, list_hosts());
    for (const HostsRecord& record : records) UNISONO_TRY(remove_hosts(record));
    return base::success();
  }
  UNISONO_ASSIGN(const HostsRecord record, find_hosts(arguments.name));
  return remove_hosts(record);
}

int list() {
  const Result<std::vector<HostsRecord>> records = list_hosts();
  if (!records.ok()) return report("list", records.error());
  for (const HostsRecord& record : records.value()) {
    fmt::print("{}: {} hosts, {} to {}, {}, rate {}, process {}\n", record.name,
               record.hosts.size(), record.hosts.front().name, record.hosts.back().name,
               record.shape, record.rate, record.keeper);
  }
  return kExitSuccess;
}

void add_up(CLI::App& hosts, const std::shared_ptr<HostsArguments>& arguments, int& exit_status) {
  CLI::App* command = hosts.add_subcommand("up", "Make hosts; prints their names and addresses");
  command->add_option("N", arguments->hosts, "Number of hosts")->required()->type_name("N");
  command
      ->add_option("--name", arguments->name,
                   "Name of the set, in lower-case letters; hosts are NAME1, NAME2 ... Default: "
                   "h, or a random one if h is up")
      ->type_name("NAME");
  command
      ->add_option("--shape", arguments->shape,
                   "star: one switch; tree: k leaf and k spine switches for k*k hosts, one route "
                   "for each pair")
      ->check(CLI::IsMember({"star", "tree"}))
      ->type_name("SHAPE")
      ->capture_default_str();
  command
      ->add_option("--rate", arguments->rate,
                   "Limit every link, each way: 200mbit, 1gbit, 64kbit (needs tbf in the kernel)")
      ->type_name("RATE");
  command
      ->add_option("--owner", arguments->owner,
                   "Remove the hosts when this process ends; without it they stay until 'down'")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->type_name("PID");
  command->footer("Example:\n  unisono hosts up 16 --shape tree --rate 200mbit");
  command->callback([arguments, &exit_status] { exit_status = up(*arguments); });
}

void add_exec(CLI::App& hosts, const std::shared_ptr<HostsArguments>& arguments, int& exit_status) {
  CLI::App* command = hosts.add_subcommand(
      "exec",
      "Run a command on a host, or on all\n\n"
      "Everything from HOST on belongs to the command. It runs in this working directory and "
      "environment\nand dies with 'unisono hosts exec', which hands on its exit status. With 'all' "
      "it has no input, and each\nline of output begins with [HOST].");
  command->add_option("--name", arguments->name, "The set that 'all' means")->type_name("NAME");
  command->add_flag("--shell", arguments->shell,
                    "Join the words with blanks and give them to sh, as ssh does: then 'unisono "
                    "hosts exec --shell' can stand where a launcher wants ssh");
  // As in `unisono run`: all words from the first that is no option of ours stay together.
  command->prefix_command();
  command->validate_positionals();
  command->add_option("HOST", arguments->unused, "A host's name, or all; then the command")
      ->check([](const std::string&) { return std::string("kept with the arguments"); })
      ->type_name("COMMAND...");
  command->footer("Example:\n  unisono hosts exec h1 ping -c 1 h2");
  command->callback([arguments, command, &exit_status] {
    const Result<int> ended = exec(*arguments, command->remaining());
    exit_status = ended.ok() ? ended.value() : report("exec", ended.error());
  });
}

void add_down(CLI::App& hosts, const std::shared_ptr<HostsArguments>& arguments, int& exit_status) {
  CLI::App* command = hosts.add_subcommand("down", "Remove hosts, with all that runs on them");
  auto* name = command->add_option("NAME", arguments->name, "The set; needed if there are several")
                   ->type_name("NAME");
  auto* option =
      command->add_option("--name", arguments->name, "The same, as 'up' and 'exec' say it")
          ->type_name("NAME")
          ->excludes(name);
  command->add_flag("--all", arguments->all, "Every set")->excludes(name)->excludes(option);
  command->footer("Example:\n  unisono hosts down h");
  command->callback([arguments, &exit_status] {
    const Status ended = down(*arguments);
    exit_status = ended.ok() ? kExitSuccess : report("down", ended.error());
  });
}

}  // namespace

void add_hosts(CLI::App& app, int& exit_status) {
  CLI::App* hosts = app.add_subcommand(
      "hosts",
      "Make test hosts in network namespaces of this machine\n\n"
      "For developers and tests; needs root. Each host has its own network (eth0), hostname, IPC, "
      "/dev/shm,\n/proc and /etc/hosts; nothing appears in the machine's own network.");
  hosts->require_subcommand(1);
  auto arguments = std::make_shared<HostsArguments>();
  add_up(*hosts, arguments, exit_status);
  add_exec(*hosts, arguments, exit_status);
  add_down(*hosts, arguments, exit_status);
  CLI::App* command = hosts->add_subcommand("list", "Print the sets of hosts that are up");
  command->callback([&exit_status] { exit_status = list(); });
  hosts->footer(
      "Example:\n  unisono hosts up 4 && unisono hosts exec all ping -c 1 h1; unisono hosts down");
}

}  // namespace unisono::tools

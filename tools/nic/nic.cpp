// SPDX-License-Identifier: BSD-3-Clause
// unisono nic: the state of the NIC path on this host, and its packets. The texts are in
// nic_status.hpp and nic_trace.hpp.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "commands.hpp"
#include "nic/loader/interface.hpp"
#include "nic/nic_status.hpp"
#include "nic/nic_status_json.hpp"
#include "nic/nic_trace.hpp"
#include "nic/service/client.hpp"

namespace unisono::tools {
namespace {

// The status of each interface that the daemon serves. One that is down has none; if that holds for
// all, the error is that of the first.
base::Result<std::vector<nic::ServiceStatus>> ask(const std::string& path) {
  UNISONO_ASSIGN(const std::unique_ptr<nic::ServiceClient> client,
                 nic::ServiceClient::connect(path));
  auto first = client->status();
  // It serves this connection on the first interface, unless that is down.
  if (!first.ok() && client->describe().ok()) first = client->status();
  if (!first.ok()) return first.error();
  std::vector<nic::ServiceStatus> all = {*first};
  std::istringstream names(first->served.all);
  for (std::string name; names >> name;) {
    if (name == first->served.interface || !client->describe(name).ok()) continue;
    UNISONO_ASSIGN(nic::ServiceStatus status, client->status());
    all.push_back(std::move(status));
  }
  return all;
}

struct StatusOptions {
  std::string path = nic::kServicePath;
  bool json = false;
};

int show_status(const StatusOptions& options) {
  const std::string& path = options.path;
  const auto interfaces = nic::read_interfaces();
  if (!interfaces.ok()) {
    fmt::print(stderr, "unisono nic status: {}\n", interfaces.error().message);
    return kExitFailure;
  }
  const auto status = ask(path);
  if (options.json) {
    fmt::print("{}\n", status_json(read_capability(), *interfaces, path, status));
    return status.ok() ? kExitSuccess : kExitFailure;
  }
  fmt::print("{}{}{}", capability_text(read_capability(), path, status.ok()),
             interfaces_text(*interfaces), service_text(path, status));
  return status.ok() ? kExitSuccess : kExitFailure;
}

constexpr std::uint64_t kMostPackets = std::uint64_t{1} << 53;

struct TraceOptions {
  std::string path = nic::kServicePath;
  std::string interface;    // empty: the first one that the daemon serves
  std::uint64_t count = 0;  // 0: no end
  std::uint32_t sample = 1;
};

// From the clock of base/clock.hpp to that of the day.
std::int64_t clock_offset_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - base::now_ns();
}

// Each line as soon as it is there: people look at it, and scripts read it through a pipe.
base::Status trace(const TraceOptions& options) {
  UNISONO_ASSIGN(const auto client, nic::ServiceClient::connect(options.path));
  UNISONO_ASSIGN(const nic::Served first, client->describe());
  const std::string wanted = options.interface.empty() ? first.interface : options.interface;
  std::istringstream names(first.all);
  if (std::find(std::istream_iterator<std::string>(names), {}, wanted) ==
      std::istream_iterator<std::string>()) {
    return base::Error{
        base::Code::argument,
        fmt::format("the daemon at {} serves {}, not {}; another one may serve that: "
                    "name its --socket",
                    options.path, first.all, wanted)};
  }
  UNISONO_ASSIGN(const nic::Served served, client->describe(wanted));
  UNISONO_TRY(client->start_trace(options.sample));
  const std::int64_t offset_ns = clock_offset_ns();
  std::uint64_t shown = 0;
  while (true) {
    UNISONO_ASSIGN(const nic::Records records, client->next_records());
    if (records.lost != 0) fmt::print("# {} more packets were not recorded\n", records.lost);
    for (const unisono_nic_trace& record : records.records) {
      fmt::print("{}\n", trace_line(record, served.interface, offset_ns));
      if (++shown == options.count) return base::success();
    }
    // The reader of the output may be gone.
    if (std::fflush(stdout) != 0) return base::success();
  }
}

int show_trace(const TraceOptions& options) {
  const base::Status traced = trace(options);
  if (traced.ok()) return kExitSuccess;
  fmt::print(stderr, "unisono nic trace: {}\n", traced.error().message);
  return kExitFailure;
}

void add_trace(CLI::App& command, int& exit_status) {
  CLI::App* trace = command.add_subcommand(
      "trace",
      "Show packets of the NIC path: headers, and whether and why each was dropped, sent or "
      "passed\n\n"
      "root and members of the group that unisonod runs as may use it, one process at a time. It "
      "shows no vectors, and counts packets that it cannot record.");
  auto options = std::make_shared<TraceOptions>();
  trace->add_option("--socket", options->path, "Where the daemon serves")->capture_default_str();
  trace->add_option("--interface", options->interface,
                    "The interface, if the daemon serves several");
  trace->add_option("--count", options->count, "End after that many packets")
      ->check(CLI::Range(std::uint64_t{1}, kMostPackets));
  trace->add_option("--sample", options->sample, "Show one packet of every K")
      ->option_text("K")
      ->check(CLI::Range(std::uint32_t{1}, std::numeric_limits<std::uint32_t>::max()));
  trace->footer("Example:\n  unisono nic trace --count 20");
  trace->callback([options, &exit_status] { exit_status = show_trace(*options); });
}

}  // namespace

void add_nic(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "nic", "Show the NIC path of this host: its daemon, its groups, its packets");
  command->require_subcommand(1);
  command->footer("Example:\n  unisono nic status");
  CLI::App* status = command->add_subcommand(
      "status",
      "Show capabilities and interfaces of this host, the daemon unisonod, its groups and "
      "counters\n\n"
      "The groups are those of your processes; root sees all. The exit status is 1 if no daemon "
      "serves.");
  auto options = std::make_shared<StatusOptions>();
  status->add_option("--socket", options->path, "Where the daemon serves")->capture_default_str();
  status->add_flag("--json", options->json,
                   "Print one JSON document (docs/reference/nic-status.md)");
  status->footer("Example:\n  unisono nic status");
  status->callback([options, &exit_status] { exit_status = show_status(*options); });
  add_trace(*command, exit_status);
}

}  // namespace unisono::tools

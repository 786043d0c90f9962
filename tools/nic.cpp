// SPDX-License-Identifier: BSD-3-Clause
// unisono nic: what there is for the NIC path on this host. nic_status.hpp words it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "commands.hpp"
#include "nic/interface.hpp"
#include "nic/service/client.hpp"
#include "nic_status.hpp"

namespace unisono::tools {
namespace {

base::Result<nic::ServiceStatus> ask(const std::string& path) {
  UNISONO_ASSIGN(const std::unique_ptr<nic::ServiceClient> client,
                 nic::ServiceClient::connect(path));
  return client->status();
}

int show_status(const std::string& path) {
  const auto interfaces = nic::read_interfaces();
  if (!interfaces.ok()) {
    fmt::print(stderr, "unisono nic status: {}\n", interfaces.error().message);
    return kExitFailure;
  }
  const auto status = ask(path);
  fmt::print("{}{}", interfaces_text(*interfaces), service_text(path, status));
  return status.ok() ? kExitSuccess : kExitFailure;
}

}  // namespace

void add_nic(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("nic", "Show what serves the NIC path on this host");
  command->require_subcommand(1);
  command->footer("Example:\n  unisono nic status");
  CLI::App* status = command->add_subcommand(
      "status",
      "Show interfaces, the daemon unisonod, its groups and counters\n\n"
      "The groups are those of your processes; root sees all. The exit status is 1 if no daemon "
      "serves.");
  auto path = std::make_shared<std::string>(nic::kServicePath);
  status->add_option("--socket", *path, "Where the daemon serves")->capture_default_str();
  status->footer("Example:\n  unisono nic status");
  status->callback([path, &exit_status] { exit_status = show_status(*path); });
}

}  // namespace unisono::tools

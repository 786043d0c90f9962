// SPDX-License-Identifier: BSD-3-Clause
#include "transport/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transport/fault/fault.hpp"
#include "transport/ofi/ofi.hpp"
#include "transport/ofi/reference.hpp"
#include "transport/shm/shm.hpp"
#include "transport/tcp/reference.hpp"
#include "transport/tcp/tcp.hpp"
#include "transport/udp/factory.hpp"
#include "transport/verbs/multicast/multicast.hpp"
#include "transport/verbs/reference.hpp"
#include "transport/verbs/verbs.hpp"
#include "transport/virtual/virtual.hpp"

namespace unisono::transport {
namespace {

using base::Setting;

constexpr std::array kLocal = {
    LocalRow{
        .name = "shm",
        .capabilities = [] { return SharedMemory().capabilities(); },
        .make = []() -> std::unique_ptr<Transport> { return std::make_unique<SharedMemory>(); }},
    LocalRow{.name = "virtual",
             .capabilities = [] { return VirtualNetwork(1, {}).capabilities(); },
             .make = nullptr},
};

// UDP, with the carrier of multicasts that UNISONO_MULTICAST_BY names.
base::Result<std::unique_ptr<JobDatagrams>> open_udp_and_multicast(const base::Settings& settings,
                                                                   int rank,
                                                                   const IpAddress& towards) {
  UNISONO_ASSIGN(auto udp, open_udp(settings, rank, towards));
  if (settings.choice(Setting::multicast_by) != "verbs") return udp;
  UNISONO_ASSIGN(NetworkSettings network, network_settings(settings));
  return multicast_by_verbs(std::move(udp), {.device = settings.text(Setting::verbs_device),
                                             .network = std::move(network)});
}

constexpr std::array kDatagrams = {
    DatagramsRow{.name = "udp",
                 .open = open_udp_and_multicast,
                 .describe = describe_udp,
                 .other_multicast = verbs_multicast_description,
                 .reference = kUdpReference},
};

// Wraps any datagrams and changes their behaviour, if its setting has a value.
struct DecoratorRow {
  base::Setting setting;
  base::Result<std::unique_ptr<Datagrams>> (*wrap)(std::unique_ptr<Datagrams> inner,
                                                   const std::string& value);
};

constexpr std::array kDecorators = {
    DecoratorRow{.setting = Setting::fault, .wrap = wrap_with_faults},
};

constexpr std::array kRemoteMemory = {
    RemoteMemoryRow{.name = "tcp",
                    .open =
                        [](const base::Settings& settings, const RegionOptions& options) {
                          return open_tcp({.address = options.address,
                                           .rank = options.rank,
                                           .ranks = options.ranks,
                                           .key = options.key,
                                           .region = options.region,
                                           .region_bytes = options.region_bytes,
                                           .silence_ns = options.silence_ns,
                                           .tags_payloads = settings.toggle(Setting::bulk_tags) !=
                                                            base::Toggle::off});
                        },
                    .availability = tcp_description,
                    .reference = kTcpReference},
    RemoteMemoryRow{.name = "ofi",
                    .open =
                        [](const base::Settings& settings, const RegionOptions& options) {
                          return open_ofi({.provider = settings.text(Setting::ofi_provider),
                                           .address = options.address,
                                           .ranks = options.ranks,
                                           .region = options.region,
                                           .region_bytes = options.region_bytes});
                        },
                    .availability = ofi_description,
                    .reference = kOfiReference},
    RemoteMemoryRow{.name = "verbs",
                    .open =
                        [](const base::Settings& settings, const RegionOptions& options) {
                          return open_verbs({.device = settings.text(Setting::verbs_device),
                                             .address = options.address,
                                             .rank = options.rank,
                                             .ranks = options.ranks,
                                             .key = options.key,
                                             .region = options.region,
                                             .region_bytes = options.region_bytes,
                                             .silence_ns = options.silence_ns});
                        },
                    .availability = verbs_description,
                    .reference = kVerbsReference},
};

}  // namespace

std::span<const LocalRow> local_rows() { return kLocal; }

std::span<const DatagramsRow> datagrams_rows() { return kDatagrams; }

std::span<const RemoteMemoryRow> remote_memory_rows() { return kRemoteMemory; }

base::Result<std::unique_ptr<Datagrams>> decorate(std::unique_ptr<Datagrams> datagrams,
                                                  const base::Settings& settings) {
  for (const DecoratorRow& row : kDecorators) {
    const std::string& value = settings.text(row.setting);
    if (value.empty()) continue;
    auto wrapped = row.wrap(std::move(datagrams), value);
    if (!wrapped.ok()) {
      return base::Error{wrapped.error().code,
                         fmt::format("{}={}: {}", base::setting_row(row.setting).name, value,
                                     wrapped.error().message)};
    }
    datagrams = std::move(*wrapped);
  }
  return datagrams;
}

RemoteMemoryChoice choose_remote_memory(const base::Settings& settings) {
  const std::string_view wish = settings.choice(Setting::bulk);
  if (wish == "auto") return {.row = kRemoteMemory.data(), .insists = false};
  const auto row = std::ranges::find(kRemoteMemory, wish, &RemoteMemoryRow::name);
  if (row == kRemoteMemory.end()) return {};
  return {.row = row, .insists = true};
}

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// The table of transports: a row each. Rooms above ask for what carries bytes between the ranks of
// a host, or datagrams or long messages between hosts, and name no transport. To add one is to add
// a folder and a row in table.cpp (docs/howto/add-a-transport.md). Control path; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "transport/job_datagrams.hpp"
#include "transport/remote_memory.hpp"
#include "transport/transport.hpp"

namespace unisono::transport {

// Between the ranks of one host. The first row is what jobs use.
struct LocalRow {
  std::string_view name;
  Capabilities (*capabilities)();
  std::unique_ptr<Transport> (*make)();  // null: made by a test that drives its network
};
std::span<const LocalRow> local_rows();

// Datagrams between hosts. The first row is what jobs use.
struct DatagramsRow {
  std::string_view name;
  // Of rank `rank`, from an address from which `towards` is reached. Errors: argument, system.
  base::Result<std::unique_ptr<JobDatagrams>> (*open)(const base::Settings& settings, int rank,
                                                      const IpAddress& towards);
  // For people: what this host would use towards another, as lines "name: value".
  base::Result<std::string> (*describe)(const base::Settings& settings, const IpAddress& towards);
  std::string_view reference;  // its part of docs/reference/transports.md
};
std::span<const DatagramsRow> datagrams_rows();

// What makes any datagrams different, where its setting has a value.
struct DecoratorRow {
  base::Setting setting;
  base::Result<std::unique_ptr<Datagrams>> (*wrap)(std::unique_ptr<Datagrams> inner,
                                                   const std::string& value);
};
std::span<const DecoratorRow> decorator_rows();
// By all whose settings have a value. Errors: argument, with the name of the setting.
base::Result<std::unique_ptr<Datagrams>> decorate(std::unique_ptr<Datagrams> datagrams,
                                                  const base::Settings& settings);

// A rank's memory that the other hosts may write and read, and where it is reached.
struct RegionOptions {
  IpAddress address;  // the host's on the network that the job uses
  int ranks = 1;
  std::byte* region = nullptr;  // aligned to a page
  std::size_t region_bytes = 0;
};

// Long messages between hosts. Its name is one of the choices of UNISONO_BULK.
struct RemoteMemoryRow {
  std::string_view name;
  // May take long. Errors: unsupported (not built, not installed, no such device), system.
  base::Result<std::unique_ptr<RemoteMemory>> (*open)(const base::Settings& settings,
                                                      const RegionOptions& options);
  // For people: what there is of it on this machine, or why there is nothing.
  std::string (*availability)();
  std::string_view reference;
};
std::span<const RemoteMemoryRow> remote_memory_rows();

struct RemoteMemoryChoice {
  const RemoteMemoryRow* row = nullptr;  // null: long messages go as datagrams
  bool insists = false;                  // it is an error if a rank cannot use it
};
// As UNISONO_BULK says.
RemoteMemoryChoice choose_remote_memory(const base::Settings& settings);

}  // namespace unisono::transport

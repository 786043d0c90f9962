// SPDX-License-Identifier: BSD-3-Clause
// The table of transports, one row each. Code above asks for a transport within a host, for
// datagrams or for long messages between hosts, and names none. A new transport is a folder and a
// row in table.cpp (docs/howto/add-a-transport.md). Control path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "transport/datagrams.hpp"
#include "transport/ip/ip.hpp"
#include "transport/job_datagrams.hpp"
#include "transport/remote_memory.hpp"
#include "transport/transport.hpp"
#include "wire/key.hpp"

namespace unisono::transport {

// A transport between the ranks of one host. Jobs use the first row.
struct LocalRow {
  std::string_view name;
  Capabilities (*capabilities)();
  std::unique_ptr<Transport> (*make)();  // null: made by a test that drives its network
};
std::span<const LocalRow> local_rows();

// Datagrams between hosts. Jobs use the first row.
struct DatagramsRow {
  std::string_view name;
  // For rank `rank`, from a local address that reaches `towards`. Errors: argument, system.
  base::Result<std::unique_ptr<JobDatagrams>> (*open)(const base::Settings& settings, int rank,
                                                      const IpAddress& towards);
  // For people: what this host would use towards another one, as lines "name: value".
  base::Result<std::string> (*describe)(const base::Settings& settings, const IpAddress& towards);
  // For people: what this machine has as another carrier of multicasts, or why it has none.
  std::string (*other_multicast)();
  std::string_view reference;  // its part of docs/reference/transports.md
};
std::span<const DatagramsRow> datagrams_rows();

// Applies all decorators whose settings have a value: they change the behaviour of any datagrams.
// Errors: argument, with the name of the
// setting.
base::Result<std::unique_ptr<Datagrams>> decorate(std::unique_ptr<Datagrams> datagrams,
                                                  const base::Settings& settings);

// A rank's memory that the other hosts may write and read, and where it is reached.
struct RegionOptions {
  IpAddress address;  // the host's on the network that the job uses
  int rank = 0;
  int ranks = 1;
  wire::Key key{};                               // the job's
  std::int64_t silence_ns = 10 * base::kSecond;  // how long a rank of another host may be silent
  std::byte* region = nullptr;                   // aligned to a page
  std::size_t region_bytes = 0;
};

// Long messages between hosts. Its name is one of the choices of UNISONO_BULK.
struct RemoteMemoryRow {
  std::string_view name;
  // May take long. Errors: unsupported (not built, not installed, no such device), system.
  base::Result<std::unique_ptr<RemoteMemory>> (*open)(const base::Settings& settings,
                                                      const RegionOptions& options);
  // For people: what this machine has of it, or why it has nothing.
  std::string (*availability)();
  std::string_view reference;
};
std::span<const RemoteMemoryRow> remote_memory_rows();

struct RemoteMemoryChoice {
  const RemoteMemoryRow* row = nullptr;  // null: long messages go as datagrams
  bool insists = false;                  // it is an error if a rank cannot use it
};
// Follows UNISONO_BULK.
RemoteMemoryChoice choose_remote_memory(const base::Settings& settings);

}  // namespace unisono::transport

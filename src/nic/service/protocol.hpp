// SPDX-License-Identifier: BSD-3-Clause
// The messages between a process and unisonod, over a Unix socket that preserves message borders
// (SOCK_SEQPACKET). Both are on one machine, so numbers are sent as in memory. A number for the
// layout of tables.h separates builds that differ in it. Each type names its fields, in order, in
// each_field(). decode() takes untrusted bytes. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "nic/program/tables.h"
#include "nic/program/trace.h"

namespace unisono::nic {

inline constexpr std::size_t kLongestMessage = 16 * 1024;
inline constexpr std::size_t kLongestText = 1024;
inline constexpr std::size_t kMostGroupLines = 256;  // listed in a status, which counts all
inline constexpr std::size_t kMostRecords = 128;     // of a trace, in one message

// The requests of a process. Each gets one message as its answer.
// Chooses the interface of this connection, by its name; empty: the first one that can be used.
struct Describe {
  std::string interface;
  static void each_field(auto& self, auto& visit) { visit.text(self.interface); }
  bool operator==(const Describe&) const = default;
};
// A group, for as long as this connection lasts. The daemon fills in index, interface and `own`.
struct Join {
  unisono_nic_row row = {};
  static void each_field(auto& self, auto& visit) { visit.plain(self.row); }
};
struct Leave {
  std::uint32_t index = 0;
  static void each_field(auto& self, auto& visit) { visit.plain(self.index); }
  bool operator==(const Leave&) const = default;
};
struct AskStatus {
  static void each_field(auto&, auto&) {}
  bool operator==(const AskStatus&) const = default;
};
// Records of packets, one of every so many, until the connection closes.
struct Trace {
  std::uint32_t every = 1;
  static void each_field(auto& self, auto& visit) { visit.plain(self.every); }
  bool operator==(const Trace&) const = default;
};

// The answers of the daemon.
struct Served {
  std::string interface;  // of this connection
  std::string all;        // that the daemon serves, separated by blanks
  std::string driver;
  std::uint8_t native = 0;        // the driver runs the program
  unisono_nic_address own = {};   // the address to which other hosts send
  std::uint32_t mask = 0;         // of the served network, network order
  std::uint64_t bytes_left = 0;   // most memory that the asking user may still have
  std::uint32_t groups_left = 0;  // ... and groups
  static void each_field(auto& self, auto& visit) {
    visit.text(self.interface);
    visit.text(self.all);
    visit.text(self.driver);
    visit.plain(self.native);
    visit.plain(self.own);
    visit.plain(self.mask);
    visit.plain(self.bytes_left);
    visit.plain(self.groups_left);
  }
};
struct Joined {  // with descriptors: slots, blocks, and each waiter's wake ring
  std::uint32_t index = 0;
  std::uint32_t interface = 0;
  unisono_nic_address own = {};
  static void each_field(auto& self, auto& visit) {
    visit.plain(self.index);
    visit.plain(self.interface);
    visit.plain(self.own);
  }
};
struct Left {
  static void each_field(auto&, auto&) {}
  bool operator==(const Left&) const = default;
};
// Also sent without a request, before the daemon closes a connection.
struct Refused {
  base::Code code = base::Code::system;
  std::string text;
  static void each_field(auto& self, auto& visit) {
    visit.plain(self.code);
    visit.text(self.text);
  }
  bool operator==(const Refused&) const = default;
};

struct GroupLine {
  std::uint32_t user = 0;
  std::uint32_t process = 0;
  std::uint32_t job = 0;
  std::uint32_t communicator = 0;
  std::uint32_t rank = 0;
  std::uint32_t children = 0;
  std::uint64_t bytes = 0;
  bool operator==(const GroupLine&) const = default;
};
// Counters of the daemon itself, since it started.
struct ServiceCounters {
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t requests = 0;
  std::uint64_t requests_refused = 0;
  std::uint64_t malformed = 0;
  std::uint64_t groups_joined = 0;
  std::uint64_t groups_ended = 0;
  // Calls visit(name, meaning, value) for each of them, in this order.
  static void each(auto& self, auto visit) {
    visit("connections_accepted", "Connections that were accepted.", self.connections_accepted);
    visit("connections_refused", "Connections beyond a quota.", self.connections_refused);
    visit("requests", "Messages of clients.", self.requests);
    visit("requests_refused", "Requests that were answered by an error.", self.requests_refused);
    visit("malformed", "Messages that could not be decoded.", self.malformed);
    visit("groups_joined", "Groups that began.", self.groups_joined);
    visit("groups_ended", "Groups that ended.", self.groups_ended);
  }
  bool operator==(const ServiceCounters&) const = default;
};
struct ServiceStatus {
  Served served;
  std::uint32_t process = 0;  // the daemon's
  std::uint32_t connections = 0;
  std::uint32_t groups = 0;  // of all users
  std::uint64_t bytes = 0;
  std::uint64_t retained_bytes = 0;  // of ended groups that processes still have mapped
  std::array<std::uint64_t, UNISONO_NIC_COUNTERS> counters = {};
  ServiceCounters service;
  std::vector<GroupLine> own_groups;  // of the asking user; root gets all
  static void each_field(auto& self, auto& visit) {
    self.served.each_field(self.served, visit);
    visit.plain(self.process);
    visit.plain(self.connections);
    visit.plain(self.groups);
    visit.plain(self.bytes);
    visit.plain(self.retained_bytes);
    visit.plain(self.counters);
    visit.plain(self.service);
    visit.list(self.own_groups, kMostGroupLines);
  }
};

struct Tracing {
  static void each_field(auto&, auto&) {}
  bool operator==(const Tracing&) const = default;
};
// Sent unasked while a trace runs.
struct Records {
  std::uint64_t lost = 0;  // records without room since the message before
  std::vector<unisono_nic_trace> records;
  static void each_field(auto& self, auto& visit) {
    visit.plain(self.lost);
    visit.list(self.records, kMostRecords);
  }
};

// Asks for a group that another process of the same user has, by its key. The answer is Joined, but
// the group still belongs to the other process.
struct Share {
  unisono_nic_id id = {};
  unisono_key key = {};
  static void each_field(auto& self, auto& visit) {
    visit.plain(self.id);
    visit.plain(self.key);
  }
};

using Message = std::variant<Describe, Join, Leave, AskStatus, Served, Joined, Left, Refused,
                             ServiceStatus, Trace, Tracing, Records, Share>;

std::vector<std::byte> encode(const Message& message);
// The error says what is wrong; Code::unsupported if the other side has another version.
base::Result<Message> decode(std::span<const std::byte> bytes);

}  // namespace unisono::nic

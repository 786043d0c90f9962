// SPDX-License-Identifier: BSD-3-Clause
// Server: unisonod's socket and its connections, for one interface or several. A connection is
// served on the interface that it has chosen. It asks the kernel for the identity of each
// client, answers each message, and drops clients that send malformed messages, do not read, or are
// gone. It never waits for a client. Users that ask at the same time are served in turn
// (turns.hpp). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "daemon/devices.hpp"
#include "daemon/groups.hpp"
#include "daemon/log_limit.hpp"
#include "daemon/metrics.hpp"
#include "daemon/tracer.hpp"
#include "daemon/turns.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::daemon {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct ServerOptions {
  std::string path;                     // of the socket
  std::vector<std::string> interfaces;  // to which the devices are attached, in their order
  std::uint16_t port = 0;               // UDP port to which other hosts send
  Quota quota;
  Capacity capacity;
  std::string metrics;                   // file for Prometheus; empty: none
  std::int64_t metrics_interval_ns = 0;  // between two writes of it
  std::int64_t drain_ns = 0;             // how long it waits for groups to end before it stops
};

class Server {
 public:
  // The devices outlive it. An error if another process serves at the path already, or if the file
  // for metrics cannot be written.
  static base::Result<std::unique_ptr<Server>> open(Devices devices, ServerOptions options);
  // Informs all connected clients, removes the socket, and writes the last metrics.
  ~Server();

  // Until `stop` can be read. With time to drain, it takes no new groups from then on. It goes on
  // until all have ended, the time is over, or `stop` can be read again.
  base::Status run(int stop);

 private:
  struct Connection {
    base::Descriptor socket;
    Client client;
    std::uint64_t served = 0;  // number of its last message among all
  };
  struct Reply {
    nic::Message message;
    nic::GroupMaps maps;  // sent with it, if valid
  };

  Server(Devices devices, ServerOptions options, base::Descriptor listener);
  bool begins_to_drain(int stop);
  bool is_drained(std::int64_t now_ns) const;
  void accept_one();
  std::optional<nic::Refused> too_many_connections(std::uint32_t user) const;
  std::int64_t time_of_chores(std::int64_t now_ns);
  std::int64_t time_of_removals(std::int64_t now_ns);
  std::int64_t time_of_metrics(std::int64_t now_ns);
  base::Status write_metrics(bool up);
  void serve_next(const std::vector<int>& ready);
  void serve(Connection& connection, bool& keep);
  void drop(int connection);
  Reply answer(Client& client, const nic::Message& question);
  base::Result<nic::Served> choose(Client& client, const std::string& interface) const;
  nic::Message answer_trace(const Client& client, const nic::Trace& question);
  Reply answer_join(const Client& client, const unisono_nic_row& row);
  Reply hand_out_group(const base::Result<std::uint32_t>& number) const;
  nic::Message answer_status(const Client& client) const;
  nic::ServiceCounters service_counters() const;
  base::Result<nic::Served> served(const Client& client) const;

  const Devices devices_;
  const ServerOptions options_;
  base::Descriptor listener_;
  Groups groups_;
  std::deque<Tracer> tracers_;  // by position of their device
  Turns turns_;
  LogLimit complaints_;
  std::map<int, Connection> connections_;  // by descriptor
  std::uint64_t messages_ = 0;             // number of messages served, for turns
  nic::ServiceCounters counted_;           // but groups_ended, which follows from the others
  std::int64_t accepts_from_ns_ = 0;       // until then it accepts no new connections
  std::int64_t metrics_ns_ = 0;            // when the metrics are written next
  bool metrics_failed_ = false;            // since the last success; logged once
  std::int64_t try_again_ns_ = 0;          // when failed removals of groups are retried
  std::int64_t drains_until_ns_ = kNever;  // never: it does not drain
};

}  // namespace unisono::daemon

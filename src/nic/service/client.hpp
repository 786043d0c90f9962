// SPDX-License-Identifier: BSD-3-Clause
// ServiceClient: a process's connection to unisonod. Groups belong to it: the daemon removes them
// when it closes, however the process ends. Each question waits for its answer, but not beyond a
// few seconds. Control path; one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "nic/memory/group_mapping.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::nic {

// Default path of unisonod's socket, and the UDP port of packets between hosts.
inline constexpr const char* kServicePath = "/run/unisono/nic.sock";
inline constexpr std::uint16_t kServicePort = 47300;

// A group that this process has joined, until it leaves or the connection closes.
struct Membership {
  unisono_nic_row row = {};  // as it was placed
  GroupMapping mapping;
  std::vector<base::Descriptor> wakes;  // by waiter, for WakeRing::open()
};

class ServiceClient {
 public:
  // Code::unsupported if no daemon serves there: the message says what to start.
  static base::Result<std::unique_ptr<ServiceClient>> connect(const std::string& path);

  // Chooses the interface of this connection: by its name, or the first one that can be used.
  base::Result<Served> describe(const std::string& interface = {});
  base::Result<std::unique_ptr<Membership>> join(const unisono_nic_row& row);
  // Shares a group that another process of this user and this host has joined with the same row.
  // Its memory stays mapped as long as this process likes. The group ends with the other's
  // connection.
  base::Result<std::unique_ptr<Membership>> share(const unisono_nic_row& row);
  base::Status leave(std::uint32_t index);
  base::Result<ServiceStatus> status();

  // From then on this connection is for next_records() only. Refused to users who may not see
  // others' packets, and while another process traces.
  base::Status start_trace(std::uint32_t every);
  // Waits; without records if none came in a few seconds.
  base::Result<Records> next_records();

  // Why the daemon does not serve this process any more, if so. Does not wait.
  std::optional<base::Error> lost();

 private:
  ServiceClient(std::string path, base::Descriptor socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}
  struct Answer;
  base::Result<Answer> ask(const Message& question);
  base::Result<std::unique_ptr<Membership>> ask_for_group(const Message& question,
                                                          const unisono_nic_row& row);
  base::Result<Answer> receive(int flags);
  base::Error ended(int error) const;

  std::string path_;
  base::Descriptor socket_;
};

}  // namespace unisono::nic

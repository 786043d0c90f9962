// SPDX-License-Identifier: BSD-3-Clause
// DoorbellSocket: signals the program of this host that there is work. It sends a datagram, which
// the program intercepts and rewrites before it leaves the host, so no privilege is needed. The
// datagram carries a secret of the group, which no other process of this host knows. One thread at
// a time. Data path: no allocation, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "nic/program/tables.h"

namespace unisono::nic {

class DoorbellSocket {
 public:
  // For the group of a placed row.
  static base::Result<std::unique_ptr<DoorbellSocket>> open(const unisono_nic_row& row);

  // UNISONO_NIC_DOORBELL, _ASK or _QUERY for an operation. The packet that the program makes of it
  // has room for a vector of `words`, at most UNISONO_NIC_WORDS_MAX.
  base::Status send(std::uint8_t kind, std::uint64_t sequence, std::size_t words);

 private:
  DoorbellSocket(const unisono_nic_row& row, base::Descriptor socket);

  const base::Descriptor socket_;
  // The packet that the program completes, and room for the vector that it puts behind.
  alignas(8) std::array<std::byte, UNISONO_PACKET_BYTES + UNISONO_NIC_WORDS_MAX* 8> packet_ = {};
};

}  // namespace unisono::nic

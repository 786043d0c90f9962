// SPDX-License-Identifier: BSD-3-Clause
#include "nic/nic_trace.hpp"

#include <fmt/format.h>

#include <array>

#include "nic/loader/device.hpp"

namespace unisono::tools {
namespace {

// By enum unisono_nic_kind, from its first one on.
constexpr std::array kKinds = {"give",     "result", "doorbell", "ask",      "ask-result",
                               "ask-give", "query",  "block",    "ask-block"};

std::string kind_text(std::uint8_t kind) {
  const std::size_t index = kind - std::size_t{UNISONO_NIC_GIVE};
  return index < kKinds.size() ? kKinds[index] : fmt::format("kind-{}", kind);
}

const char* direction_text(std::uint8_t entry) {
  switch (entry) {
    case UNISONO_NIC_RECEIVE:
      return "in";
    case UNISONO_NIC_LEAVE:
      return "out";
    case UNISONO_NIC_SPREAD:
      return "spread";
    default:
      return "?";
  }
}

// The action that the kernel was told for the frame.
const char* verdict_text(const unisono_nic_trace& record) {
  constexpr int kDropped = 1;
  constexpr int kPassed = 2;
  constexpr int kSent = 3;
  constexpr int kNext = -1;
  constexpr int kDroppedByTc = 2;
  if (record.entry == UNISONO_NIC_RECEIVE) {
    return record.verdict == kDropped  ? "drop"
           : record.verdict == kPassed ? "pass"
           : record.verdict == kSent   ? "send"
                                       : "?";
  }
  return record.verdict == kNext ? "pass" : record.verdict == kDroppedByTc ? "drop" : "?";
}

const char* reason_text(std::uint16_t reason) {
  if (reason == 0 || reason > UNISONO_NIC_COUNTERS) return "-";
  return nic::counter_name(static_cast<unisono_nic_counter>(reason - 1));
}

std::string rank_text(std::uint32_t rank) {
  return rank == UNISONO_PACKET_GROUP ? "all" : std::to_string(rank);
}

std::string time_text(std::uint64_t time_us) {
  constexpr std::uint64_t kDay = 24 * 60 * 60;
  const std::uint64_t seconds = time_us / 1'000'000 % kDay;
  return fmt::format("{:02}:{:02}:{:02}.{:06}Z", seconds / 3600, seconds / 60 % 60, seconds % 60,
                     time_us % 1'000'000);
}

}  // namespace

std::string trace_line(const unisono_nic_trace& record, const std::string& interface,
                       std::int64_t clock_offset_ns) {
  const unisono_packet& packet = record.packet;
  const std::uint64_t time_ns = record.time_ns + static_cast<std::uint64_t>(clock_offset_ns);
  return fmt::format(
      "{} {} {:<6} {} {:<10} {:<10} group {:08x}/{} operation {} rank {} to {} origin {} hop {} "
      "contribution {} vector {} frame {}",
      time_text(time_ns / 1000), interface, direction_text(record.entry), verdict_text(record),
      reason_text(record.reason), kind_text(packet.kind), packet.job, packet.communicator,
      packet.sequence, packet.sender, rank_text(packet.target), packet.origin, packet.hop,
      packet.position, packet.length, record.bytes);
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_broadcast.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace unisono::engine {

using base::Code;
using base::Error;
using base::Status;

base::Result<std::unique_ptr<NicBroadcast>> NicBroadcast::join(nic::ServiceClient& client,
                                                               nic::GroupAddresses group,
                                                               Rank rank) {
  group.depth = kSlots / 2;
  UNISONO_ASSIGN(const unisono_nic_row row, make_block_row(rank.host, group, NicWay::from_root));
  UNISONO_ASSIGN(NicBlocks blocks, NicBlocks::join(client, row, rank.place));
  return std::unique_ptr<NicBroadcast>(new NicBroadcast(std::move(blocks), std::move(rank)));
}

Status NicBroadcast::repair() {
  UNISONO_ASSIGN(const int asked, blocks_.port->repair(base::now_ns(), delay_.ns()));
  if (asked != 0) delay_.lengthen();
  return base::success();
}

// The root's program sends the block while other ranks have not called. Their programs keep it.
Status NicCasting::start(const plan::NicCall& call, const void* input, void* output) {
  calls_.delay_.restart();
  call_ = call;
  output_ = output;
  operation_ = port().next();
  root_host_ = calls_.rank_.ranks.of(call.sender);
  const bool is_root = !call.takes;
  if (is_root || !is_roots_host()) {
    const bool is_first = port().expect_only(root_host_, call.combine);
    if (is_root && !is_first) {
      port().follow();
      return Error{Code::mismatch, fmt::format("NIC path: another rank of host {} expects the "
                                               "block of broadcast {} from another root",
                                               root_host_, operation_)};
    }
  }
  if (is_root) {
    return port().post({static_cast<const std::byte*>(input), call.bytes}, call.combine);
  }
  port().follow();
  return base::success();
}

base::Result<bool> NicCasting::poll() {
  if (!port().is_done(operation_)) return false;
  const bool is_as_long = port().block(operation_, root_host_).size() / sizeof(std::uint64_t) ==
                          nic::words_of(call_.bytes);
  if (is_as_long && port().mark(operation_, root_host_) == call_.combine) return true;
  return Error{Code::mismatch,
               fmt::format("NIC path: the block of host {} in broadcast {} is of another call than "
                           "that of a rank on host {}",
                           root_host_, operation_, calls_.rank_.host)};
}

Status NicCasting::take() {
  if (!call_.takes) return base::success();
  std::memcpy(output_, port().block(operation_, root_host_).data(), call_.bytes);
  return base::success();
}

void NicCasting::sleep(std::int64_t limit_ns) {
  if (arm()) calls_.blocks_.wakes->sleep(limit_ns);
  disarm();
}

std::uint64_t NicCasting::missing() const {
  return port().is_done(operation_) ? 0 : std::uint64_t{1} << root_host_;
}

std::string NicCasting::describe() const {
  const std::string text = fmt::format("a broadcast on host {} ", calls_.rank_.host);
  if (!is_host_complete()) return text + "waits for its root on this host";
  return text +
         (missing() != 0 ? fmt::format("lacks the block of host {}", root_host_) : "has its block");
}

}  // namespace unisono::engine

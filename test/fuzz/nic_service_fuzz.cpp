// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of the messages to unisonod: an accepted message is within its limits and survives another
// round trip. No row passes row_check.hpp that the NIC program should not trust.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "daemon/row_check.hpp"
#include "nic/service/protocol.hpp"

namespace {

void check_row(const unisono_nic_row& row) {
  unisono::nic::Served served;
  served.own.ipv4 = 0x0100000A;  // 10.0.0.1
  served.mask = 0x00FFFFFF;
  const auto checked = unisono::daemon::checked_row(row, served);
  if (!checked.ok()) return;
  UNISONO_CHECK(checked->children <= UNISONO_NIC_CHILDREN_MAX, "children");
  UNISONO_CHECK(checked->forwards <= UNISONO_NIC_FORWARDS_MAX, "forwards");
  UNISONO_CHECK(checked->depth > 1 && checked->depth <= UNISONO_NIC_DEPTH_MAX, "depth");
  UNISONO_CHECK(checked->own.ipv4 == served.own.ipv4, "a foreign source address");
}

}  // namespace

namespace {

using namespace unisono::nic;

void check_bytes(std::span<const std::byte> input) {
  const auto decoded = decode(input);
  if (!decoded.ok()) return;
  if (const auto* status = std::get_if<ServiceStatus>(&*decoded)) {
    UNISONO_CHECK(status->own_groups.size() <= kMostGroupLines, "lines of a status");
  }
  if (const auto* records = std::get_if<Records>(&*decoded)) {
    UNISONO_CHECK(records->records.size() <= kMostRecords, "records of a message");
  }
  if (const auto* join = std::get_if<Join>(&*decoded)) check_row(join->row);
  const auto bytes = encode(*decoded);
  UNISONO_CHECK(bytes.size() == input.size(), "a round trip changed the length");
  UNISONO_CHECK(decode(bytes).ok(), "encode() gave what decode() refuses");
}

// An empty message of a type, for fields to be written over.
std::vector<std::byte> empty_of(std::uint8_t type) {
  const std::vector<Message> all = {Describe{}, Join{},    Leave{},   AskStatus{},     Served{},
                                    Joined{},   Left{},    Refused{}, ServiceStatus{}, Trace{},
                                    Tracing{},  Records{}, Share{}};
  return encode(all[type % all.size()]);
}

}  // namespace

// The first byte is a type, the others are its fields. The head, which describes the layout of this
// build's tables, is a right one. The whole input is tried unchanged as well.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  check_bytes(input);
  if (size == 0) return 0;
  std::vector<std::byte> message = empty_of(data[0]);
  const std::size_t head = encode(AskStatus{}).size();
  const auto fields = input.subspan(1);
  // At their own length, and at the length that an empty message of the type has.
  const std::size_t shared = std::min(fields.size(), message.size() - head);
  std::copy_n(fields.begin(), shared, message.begin() + static_cast<std::ptrdiff_t>(head));
  check_bytes(message);
  message.resize(head);
  message.insert(message.end(), fields.begin(), fields.end());
  check_bytes(message);
  return 0;
}

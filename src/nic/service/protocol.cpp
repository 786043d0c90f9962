// SPDX-License-Identifier: BSD-3-Clause
// A message is a head (magic, kind, layout) and the fields of its type, one after the other.
#include "nic/service/protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace unisono::nic {
namespace {

using base::Code;
using base::Error;

constexpr std::uint32_t kMagic = 0x4E494355;  // "UCIN"
constexpr std::uint32_t kVersion = 6;
// Differs where the two sides would see different places in the shared memory.
using Layout = std::array<std::uint32_t, 4>;
constexpr Layout kLayout = {kVersion, sizeof(unisono_nic_row), sizeof(unisono_nic_slot),
                            sizeof(unisono_nic_block)};
static_assert(sizeof(unisono_nic_trace) == 96, "another layout is another version");

template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

class Writer {
 public:
  void plain(const Plain auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // Longer text is cut: it is for people.
  void text(const std::string& text) {
    const std::size_t kept = std::min(text.size(), kLongestText);
    plain(static_cast<std::uint32_t>(kept));
    const auto bytes = std::as_bytes(std::span(text.data(), kept));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <Plain Item>
  void list(const std::vector<Item>& items, std::size_t most) {
    const std::size_t kept = std::min(items.size(), most);
    plain(static_cast<std::uint32_t>(kept));
    for (std::size_t i = 0; i < kept; ++i) plain(items[i]);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After a read past the end all values are zero, and whole() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  void plain(Plain auto& value) {
    const auto part = take(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), sizeof value);
  }
  void text(std::string& text) {
    std::uint32_t length = 0;
    plain(length);
    if (length > kLongestText) failed_ = true;
    const auto part = take(failed_ ? 0 : length);
    text.assign(reinterpret_cast<const char*>(part.data()), part.size());
  }
  template <Plain Item>
  void list(std::vector<Item>& items, std::size_t most) {
    std::uint32_t length = 0;
    plain(length);
    if (length > most) failed_ = true;
    items.resize(failed_ ? 0 : length);
    for (Item& item : items) plain(item);
  }
  bool whole() const { return !failed_ && bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t count) {
    failed_ = failed_ || count > bytes_.size();
    if (failed_) return {};
    const auto part = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return part;
  }

  std::span<const std::byte> bytes_;
  bool failed_ = false;
};

struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t kind = 0;
  Layout layout = kLayout;
};

// A message of the type with this index, empty.
template <std::size_t kIndex = 0>
Message empty_message(std::size_t index) {
  if constexpr (kIndex + 1 < std::variant_size_v<Message>) {
    if (index != kIndex) return empty_message<kIndex + 1>(index);
  }
  return Message(std::in_place_index<kIndex>);
}

// Checks beyond those of the types.
bool is_sound(const Message& message) {
  if (const auto* refused = std::get_if<Refused>(&message)) {
    return refused->code > Code::ok && refused->code <= Code::cancelled;
  }
  if (const auto* trace = std::get_if<Trace>(&message)) return trace->every != 0;
  return true;
}

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  Writer out;
  Head head;
  head.kind = static_cast<std::uint32_t>(message.index());
  out.plain(head);
  std::visit([&out](const auto& fields) { fields.each_field(fields, out); }, message);
  return out.take();
}

base::Result<Message> decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  Head head;
  head.magic = 0;
  in.plain(head);
  if (head.magic != kMagic) {
    return Error{Code::argument,
                 fmt::format("{} bytes that are no message of the NIC service", bytes.size())};
  }
  if (head.layout != kLayout) {
    return Error{Code::unsupported,
                 "the NIC service and this library are of different versions of Unisono; restart "
                 "unisonod after an update"};
  }
  if (head.kind >= std::variant_size_v<Message>) {
    return Error{Code::argument, fmt::format("a NIC service message of kind {}", head.kind)};
  }
  Message message = empty_message(head.kind);
  std::visit([&in](auto& fields) { fields.each_field(fields, in); }, message);
  if (in.whole() && is_sound(message)) return message;
  return Error{Code::argument, fmt::format("a NIC service message of kind {} with {} bytes whose "
                                           "fields do not fit",
                                           head.kind, bytes.size())};
}

}  // namespace unisono::nic

// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/place_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"
#include "bootstrap/kvs/board.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using transport::IpAddress;

constexpr char kBlankInNote = '~';  // a note has no blanks
constexpr std::string_view kPlace = "place";
constexpr std::string_view kTrouble = "trouble";
static_assert(kSealedInNote * (2 * sizeof(SealedSecret) + 1) <= Board::kMostNoteBytes);

Error unreadable(std::string_view text) {
  return {Code::state, fmt::format("the launcher hands out a note that no rank of this version "
                                   "writes: \"{}\"",
                                   text.substr(0, 64))};
}

// Up to the separator, which goes as well.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <class Bytes>
std::string hex_text(const Bytes& bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

template <class Bytes>
std::optional<Bytes> parse_hex(std::string_view digits) {
  Bytes bytes{};
  if (digits.size() != 2 * bytes.size()) return {};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint8_t byte = 0;
    const char* const end = digits.data() + 2 * i + 2;
    const auto [rest, failure] = std::from_chars(digits.data() + 2 * i, end, byte, 16);
    if (failure != std::errc{} || rest != end) return {};
    bytes[i] = static_cast<typename Bytes::value_type>(byte);
  }
  return bytes;
}

}  // namespace

std::vector<IpAddress> noted_addresses(std::span<const transport::LocalAddress> locals,
                                       const transport::NetworkList& allowed) {
  std::vector<IpAddress> result;
  for (const transport::LocalAddress& local : locals) {
    const IpAddress& address = local.address;
    if (address.is_loopback() || address.is_link_local()) continue;
    if (!allowed.allows(local.interface, address)) continue;
    if (result.size() < HostNote::kMostAddresses) result.push_back(address);
  }
  return result;
}

std::string write_note(const HostNote& note) {
  std::string text = fmt::format("{}/{}", hex_text(note.host), hex_text(note.key));
  char separator = '/';
  for (const IpAddress& address : note.addresses) {
    text += fmt::format("{}{}", separator, transport::ip_text(address));
    separator = ',';
  }
  return text;
}

Result<HostNote> read_host_note(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() > Board::kMostNoteBytes) return unreadable(whole);
  const auto host = parse_hex<HostId>(take_part(text, '/'));
  const auto key = parse_hex<PublicKey>(take_part(text, '/'));
  if (!host || !key) return unreadable(whole);
  HostNote note{*host, *key, {}};
  while (!text.empty()) {
    const auto address = transport::parse_ip(take_part(text, ','));
    if (!address.ok() || note.addresses.size() == HostNote::kMostAddresses) {
      return unreadable(whole);
    }
    note.addresses.push_back(*address);
  }
  return note;
}

std::vector<IpAddress> others_addresses(const HostNote& own, std::span<const HostNote> notes) {
  std::vector<HostId> seen{own.host};
  std::vector<IpAddress> result;
  for (const HostNote& note : notes) {
    if (std::ranges::find(seen, note.host) != seen.end()) continue;
    seen.push_back(note.host);
    std::ranges::copy_if(note.addresses, std::back_inserter(result), [&](const IpAddress& one) {
      return std::ranges::find(own.addresses, one) == own.addresses.end();
    });
  }
  return result;
}

std::string write_note(const PlaceNote& note) {
  if (const MeetingPlace* place = std::get_if<MeetingPlace>(&note)) {
    return fmt::format("{}/{}/{}", kPlace, transport::endpoint_text(place->endpoint),
                       hex_text(place->key));
  }
  const Error& error = std::get<Error>(note);
  std::string text = error.message;
  for (char& letter : text) {
    if (letter <= ' ' || letter >= 0x7f) letter = kBlankInNote;
  }
  text = fmt::format("{}/{}/{}", kTrouble, static_cast<int>(error.code), text);
  return text.substr(0, Board::kMostNoteBytes);
}

Result<PlaceNote> read_place_note(std::string_view text) {
  const std::string_view whole = text;
  if (text.size() > Board::kMostNoteBytes) return unreadable(whole);
  const std::string_view kind = take_part(text, '/');
  const std::string_view first = take_part(text, '/');
  if (kind == kPlace) {
    const auto endpoint = transport::parse_endpoint(first);
    const auto key = parse_hex<PublicKey>(text);
    if (!endpoint.ok() || endpoint->port == 0 || !key) return unreadable(whole);
    return PlaceNote(MeetingPlace{*endpoint, *key});
  }
  const std::optional<std::int64_t> code = base::parse_integer(first);
  if (kind != kTrouble || !code || *code < static_cast<int>(Code::argument) ||
      *code > static_cast<int>(Code::cancelled)) {
    return unreadable(whole);
  }
  std::string message(text);
  std::ranges::replace(message, kBlankInNote, ' ');
  return PlaceNote(Error{static_cast<Code>(*code), message});
}

std::string write_note(const SealedNote& note) {
  std::string text;
  for (const SealedSecret& sealed : note) {
    if (!text.empty()) text += ',';
    text += hex_text(sealed);
  }
  return text;
}

Result<SealedNote> read_sealed_note(std::string_view text) {
  const std::string_view whole = text;
  SealedNote note;
  do {
    const auto sealed = parse_hex<SealedSecret>(take_part(text, ','));
    if (!sealed || note.size() == kSealedInNote) return unreadable(whole);
    note.push_back(*sealed);
  } while (!text.empty());
  return note;
}

}  // namespace unisono::bootstrap

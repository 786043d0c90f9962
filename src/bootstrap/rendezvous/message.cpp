// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/check.hpp"

namespace unisono::bootstrap {
namespace {

constexpr std::uint32_t kMagic = 0x53494e55;  // "UNIS"
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kTagBytes = 8;

enum class MessageType : std::uint16_t {
  challenge = 1,
  hello,
  welcome,
  refused,
  redirect,
  withdrawal
};

// The size of a member in a Welcome. In a job of one host it has only its pid.
constexpr std::size_t member_bytes(std::uint32_t hosts) {
  return hosts == 1 ? 4 : 4 + 4 + kEndpointBytes;
}

// Smallest and largest body of each type, so that the header alone reveals a wrong length.
struct BodyRange {
  std::size_t least;
  std::size_t most;
};

std::optional<BodyRange> body_range(std::uint16_t type) {
  constexpr std::size_t kHelloBody = kHelloFrameBytes - kHeaderBytes;
  constexpr std::size_t kWelcomeFixed = 8 + 4 + 8 + 4 + 4 + 4 + 4 + 8 + 4 + 4 + kTagBytes;
  constexpr std::size_t kRefusedFixed = 4 + 4 + sizeof(Nonce) + kTagBytes;
  constexpr std::size_t kRedirectFixed = 4 + sizeof(HostId) + 4 + kTagBytes;
  constexpr std::size_t kWithdrawalFixed = sizeof(Nonce) + 4 + 4 + 4 + kTagBytes;
  static_assert(kWithdrawalFixed + kMostFailureBytes <= kHelloBody);
  switch (static_cast<MessageType>(type)) {
    case MessageType::challenge:
      return BodyRange{sizeof(Nonce), sizeof(Nonce)};
    case MessageType::hello:
      return BodyRange{kHelloBody, kHelloBody};
    case MessageType::welcome:
      return BodyRange{kWelcomeFixed, kWelcomeFixed + kMostNameBytes + kMostDifferencesBytes +
                                          member_bytes(2) * kMostRanks};
    case MessageType::refused:
      return BodyRange{kRefusedFixed, kRefusedFixed + kMostTextBytes};
    case MessageType::redirect:
      return BodyRange{kRedirectFixed, kRedirectFixed + kMostNameBytes};
    case MessageType::withdrawal:
      return BodyRange{kWithdrawalFixed, kWithdrawalFixed + kMostFailureBytes};
  }
  return {};
}

class Writer {
 public:
  template <class Integer>
  void integer(Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      bytes_ += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff);
    }
  }
  void raw(std::string_view bytes) { bytes_ += bytes; }
  // Cuts a longer text: it is for people.
  void text(std::string_view bytes, std::size_t most) {
    const std::string_view kept = bytes.substr(0, most);
    integer(static_cast<std::uint32_t>(kept.size()));
    raw(kept);
  }
  // Takes the same room whatever its length.
  void padded_text(std::string_view bytes, std::size_t most) {
    text(bytes, most);
    bytes_.append(most - std::min(bytes.size(), most), '\0');
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After a read past the end every value is 0 and whole() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Integer>
  Integer integer() {
    const std::string_view part = take(sizeof(Integer));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    }
    return static_cast<Integer>(value);
  }
  template <std::size_t kBytes>
  void raw(std::array<char, kBytes>& target) {
    const std::string_view part = take(kBytes);
    std::copy(part.begin(), part.end(), target.begin());
  }
  std::string text(std::size_t most) {
    const auto length = integer<std::uint32_t>();
    if (length > most) failed_ = true;
    return std::string(take(failed_ ? 0 : length));
  }
  std::string padded_text(std::size_t most) {
    std::string text = this->text(most);
    const std::string_view padding = take(most - text.size());
    if (padding.find_first_not_of('\0') != std::string_view::npos) failed_ = true;
    return text;
  }
  std::size_t left() const { return bytes_.size(); }
  bool whole() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) {
      failed_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

std::string_view view(const std::array<char, 16>& bytes) { return {bytes.data(), bytes.size()}; }

constexpr std::uint16_t kFamilyV4 = 4;
constexpr std::uint16_t kFamilyV6 = 6;

void write_endpoint(Writer& out, const transport::Endpoint& endpoint) {
  const bool v4 = endpoint.address.family == transport::Family::v4;
  out.integer(v4 ? kFamilyV4 : kFamilyV6);
  out.integer(endpoint.port);
  for (const std::uint8_t byte : endpoint.address.bytes) out.integer(byte);
}

// Accepts no endpoint (one form only), or one that a rank can have; otherwise nullopt.
std::optional<transport::Endpoint> read_endpoint(Reader& in) {
  transport::Endpoint endpoint;
  const auto family = in.integer<std::uint16_t>();
  endpoint.port = in.integer<std::uint16_t>();
  for (std::uint8_t& byte : endpoint.address.bytes) byte = in.integer<std::uint8_t>();
  if (family != kFamilyV4 && family != kFamilyV6) return {};
  const auto& bytes = endpoint.address.bytes;
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  if (family == kFamilyV6) endpoint.address.family = transport::Family::v6;
  if (family == kFamilyV4 && !std::all_of(bytes.begin() + 4, bytes.end(), is_zero)) return {};
  if (endpoint.port == 0) {
    const bool none = endpoint == transport::Endpoint{};
    return none ? std::optional(endpoint) : std::nullopt;
  }
  const bool usable =
      !std::all_of(bytes.begin(), bytes.end(), is_zero) && !endpoint.address.is_multicast();
  return usable ? std::optional(endpoint) : std::nullopt;
}

struct BodyWriter {
  Writer& out;

  MessageType operator()(const Challenge& message) {
    out.raw(view(message.nonce));
    return MessageType::challenge;
  }
  MessageType operator()(const Hello& message) {
    out.raw(view(message.nonce));
    out.raw(view(message.host));
    out.integer(message.rank);
    out.integer(message.ranks);
    out.integer(message.memory_bytes);
    out.integer(message.memory_layout);
    write_endpoint(out, message.endpoint);
    out.integer(message.max_payload);
    out.integer(message.relay_socket);
    out.integer(message.kernel.id);
    out.integer(message.kernel.cores);
    out.integer(static_cast<std::uint32_t>(message.failure));
    out.padded_text(message.failure_text, kMostFailureBytes);
    out.padded_text(message.settings, kMostSettingsBytes);
    out.integer(message.warnings);
    out.integer(std::uint64_t{0});
    return MessageType::hello;
  }
  MessageType operator()(const Welcome& message) {
    out.integer(message.memory_bytes);
    out.text(message.job, kMostNameBytes);
    out.integer(message.job_id);
    out.integer(message.hosts);
    out.integer(message.max_payload);
    out.integer(message.shared_cores);
    out.text(message.differing_settings, kMostDifferencesBytes);
    out.integer(message.warnings);
    out.integer(std::uint32_t{message.rank_zero_serves});
    out.integer(static_cast<std::uint32_t>(message.members.size()));
    for (const WelcomeMember& member : message.members) {
      out.integer(member.pid);
      if (message.hosts == 1) continue;
      out.integer(member.host);
      write_endpoint(out, member.endpoint);
    }
    out.integer(std::uint64_t{0});
    return MessageType::welcome;
  }
  MessageType operator()(const Refused& message) {
    out.integer(static_cast<std::uint32_t>(message.code));
    out.text(message.text, kMostTextBytes);
    out.raw(view(message.hello));
    out.integer(std::uint64_t{0});
    return MessageType::refused;
  }
  MessageType operator()(const Redirect& message) {
    out.text(message.name, kMostNameBytes);
    out.raw(view(message.host));
    out.integer(message.relay);
    out.integer(std::uint64_t{0});
    return MessageType::redirect;
  }
  MessageType operator()(const Withdrawal& message) {
    out.raw(view(message.hello));
    out.integer(static_cast<std::uint32_t>(message.reason));
    out.integer(static_cast<std::uint32_t>(message.code));
    out.text(message.text, kMostFailureBytes);
    out.integer(std::uint64_t{0});
    return MessageType::withdrawal;
  }
};

// Terminals will show it.
std::string printable(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
  }
  return text;
}

bool is_code(std::uint32_t code) {
  return code <= static_cast<std::uint32_t>(base::Code::peer_argument);
}

std::optional<Message> read_hello(Reader& in) {
  Hello hello;
  in.raw(hello.nonce);
  in.raw(hello.host);
  hello.rank = in.integer<std::uint32_t>();
  hello.ranks = in.integer<std::uint32_t>();
  hello.memory_bytes = in.integer<std::uint64_t>();
  hello.memory_layout = in.integer<std::uint64_t>();
  const std::optional<transport::Endpoint> endpoint = read_endpoint(in);
  if (!endpoint) return {};
  hello.endpoint = *endpoint;
  hello.max_payload = in.integer<std::uint32_t>();
  hello.relay_socket = in.integer<std::uint64_t>();
  hello.kernel.id = in.integer<std::uint64_t>();
  hello.kernel.cores = in.integer<std::uint32_t>();
  const auto failure = in.integer<std::uint32_t>();
  hello.failure = static_cast<base::Code>(failure);
  hello.failure_text = printable(in.padded_text(kMostFailureBytes));
  hello.settings = printable(in.padded_text(kMostSettingsBytes));
  hello.warnings = in.integer<std::uint64_t>();
  in.integer<std::uint64_t>();
  const bool sane = is_code(failure) && hello.nonce != Nonce{} && hello.kernel.id != 0 &&
                    hello.kernel.cores >= 1 && hello.kernel.cores <= kMostCores &&
                    hello.ranks >= 1 && hello.ranks <= kMostRanks && hello.rank < hello.ranks &&
                    hello.memory_bytes <= kMostMemoryBytes && hello.max_payload <= kMostPayload &&
                    (hello.max_payload == 0) == (hello.endpoint.port == 0);
  return sane ? std::optional<Message>(hello) : std::nullopt;
}

// Whether hosts are numbered in the order of ranks, and only one host has pids.
bool members_are_sane(const Welcome& welcome) {
  std::uint32_t hosts = 0;
  std::optional<std::uint32_t> with_pids;  // the host of the server
  for (const WelcomeMember& member : welcome.members) {
    if (member.host > hosts || member.pid > INT_MAX) return false;
    hosts = std::max(hosts, member.host + 1);
    if (member.pid == 0) continue;
    if (with_pids && *with_pids != member.host) return false;
    with_pids = member.host;
  }
  if (hosts != welcome.hosts) return false;
  return std::ranges::all_of(welcome.members, [&](const WelcomeMember& member) {
    return (member.pid != 0) == (with_pids == member.host) &&
           (member.endpoint.port != 0) == (welcome.hosts > 1);
  });
}

std::optional<Message> read_welcome(Reader& in) {
  Welcome welcome;
  welcome.memory_bytes = in.integer<std::uint64_t>();
  welcome.job = in.text(kMostNameBytes);
  welcome.job_id = in.integer<std::uint64_t>();
  welcome.hosts = in.integer<std::uint32_t>();
  welcome.max_payload = in.integer<std::uint32_t>();
  welcome.shared_cores = in.integer<std::uint32_t>();
  welcome.differing_settings = printable(in.text(kMostDifferencesBytes));
  welcome.warnings = in.integer<std::uint64_t>();
  const auto rank_zero_serves = in.integer<std::uint32_t>();
  welcome.rank_zero_serves = rank_zero_serves == 1;
  const auto ranks = in.integer<std::uint32_t>();
  if (ranks < 1 || ranks > kMostRanks || welcome.hosts < 1 || welcome.hosts > ranks) return {};
  if (in.left() != member_bytes(welcome.hosts) * ranks + kTagBytes) return {};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    WelcomeMember member{in.integer<std::uint32_t>(), 0, {}};
    if (welcome.hosts > 1) {
      member.host = in.integer<std::uint32_t>();
      const std::optional<transport::Endpoint> endpoint = read_endpoint(in);
      if (!endpoint) return {};
      member.endpoint = *endpoint;
    }
    welcome.members.push_back(member);
  }
  in.integer<std::uint64_t>();
  const bool sane =
      rank_zero_serves <= 1 && welcome.memory_bytes >= 1 &&
      welcome.memory_bytes <= kMostMemoryBytes && welcome.max_payload <= kMostPayload &&
      (welcome.max_payload == 0) == (welcome.hosts == 1) &&
      welcome.shared_cores <= (welcome.hosts == 1 ? 0 : kMostCores) && members_are_sane(welcome);
  return sane ? std::optional<Message>(welcome) : std::nullopt;
}

std::optional<Message> read_refused(Reader& in) {
  const auto code = in.integer<std::uint32_t>();
  std::string text = in.text(kMostTextBytes);
  if (code == 0 || !is_code(code)) return {};
  Refused refused{static_cast<base::Code>(code), printable(std::move(text)), {}};
  in.raw(refused.hello);
  in.integer<std::uint64_t>();
  return refused;
}

std::optional<Message> read_redirect(Reader& in) {
  Redirect redirect;
  redirect.name = in.text(kMostNameBytes);
  in.raw(redirect.host);
  redirect.relay = in.integer<std::uint32_t>();
  in.integer<std::uint64_t>();
  const bool sane =
      !redirect.name.empty() && (redirect.relay < kMostRanks || redirect.relay == kNoRelay);
  return sane ? std::optional<Message>(redirect) : std::nullopt;
}

std::optional<Message> read_withdrawal(Reader& in) {
  Withdrawal withdrawal;
  in.raw(withdrawal.hello);
  const auto reason = in.integer<std::uint32_t>();
  const auto code = in.integer<std::uint32_t>();
  withdrawal.reason = static_cast<Withdrawal::Reason>(reason);
  withdrawal.code = static_cast<base::Code>(code);
  withdrawal.text = printable(in.text(kMostFailureBytes));
  in.integer<std::uint64_t>();
  const bool failed = withdrawal.reason == Withdrawal::Reason::failed;
  const bool sane = reason >= static_cast<std::uint32_t>(Withdrawal::Reason::ended) &&
                    reason <= static_cast<std::uint32_t>(Withdrawal::Reason::failed) &&
                    is_code(code) && failed == (code != 0) && (failed || withdrawal.text.empty());
  return sane ? std::optional<Message>(withdrawal) : std::nullopt;
}

std::optional<Message> read_body(MessageType type, Reader& in) {
  switch (type) {
    case MessageType::challenge: {
      Challenge challenge;
      in.raw(challenge.nonce);
      return challenge;
    }
    case MessageType::hello:
      return read_hello(in);
    case MessageType::welcome:
      return read_welcome(in);
    case MessageType::refused:
      return read_refused(in);
    case MessageType::redirect:
      return read_redirect(in);
    case MessageType::withdrawal:
      return read_withdrawal(in);
  }
  return {};
}

base::Error malformed(std::string_view what) {
  return {base::Code::argument, fmt::format("not a bootstrap message: {}", what)};
}

// Over the nonce and the frame without its tag. The header is part of it, so the tag of one type is
// none of another.
std::uint64_t tag_of(std::string_view frame, const wire::Key& key, const Nonce& nonce) {
  std::string signed_bytes(view(nonce));
  signed_bytes += frame.substr(0, frame.size() - kTagBytes);
  return wire::hash(key, signed_bytes);
}

}  // namespace

std::string encode(const Message& message) {
  Writer body;
  const MessageType type = std::visit(BodyWriter{body}, message);
  const std::string body_bytes = body.take();
  Writer frame;
  frame.integer(kMagic);
  frame.integer(kMessageVersion);
  frame.integer(static_cast<std::uint16_t>(type));
  frame.integer(static_cast<std::uint32_t>(body_bytes.size()));
  frame.raw(body_bytes);
  return frame.take();
}

base::Result<std::optional<Decoded>> decode(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::optional<Decoded>();
  Reader header(bytes.substr(0, kHeaderBytes));
  if (header.integer<std::uint32_t>() != kMagic) return malformed("wrong magic number");
  const auto version = header.integer<std::uint16_t>();
  if (version != kMessageVersion) {
    return malformed(
        fmt::format("version {} where this library speaks {}; all ranks must use the "
                    "same version of Unisono",
                    version, kMessageVersion));
  }
  const auto type = header.integer<std::uint16_t>();
  const auto length = header.integer<std::uint32_t>();
  const std::optional<BodyRange> range = body_range(type);
  if (!range) return malformed(fmt::format("unknown type {}", type));
  if (length < range->least || length > range->most) {
    return malformed(fmt::format("length {} does not fit type {}", length, type));
  }
  if (bytes.size() < kHeaderBytes + length) return std::optional<Decoded>();
  Reader body(bytes.substr(kHeaderBytes, length));
  std::optional<Message> message = read_body(static_cast<MessageType>(type), body);
  if (!message || !body.whole()) return malformed(fmt::format("bad content of type {}", type));
  return std::optional(Decoded{std::move(*message), kHeaderBytes + length});
}

void sign(std::string& frame, const wire::Key& key, const Nonce& nonce) {
  UNISONO_CHECK(frame.size() >= kHeaderBytes + kTagBytes, "sign() of a message without a tag");
  Writer tag;
  tag.integer(tag_of(frame, key, nonce));
  frame.replace(frame.size() - kTagBytes, kTagBytes, tag.take());
}

bool signature_is_right(std::string_view frame, const wire::Key& key, const Nonce& nonce) {
  if (frame.size() < kHeaderBytes + kTagBytes) return false;
  Reader tag(frame.substr(frame.size() - kTagBytes));
  return (tag.integer<std::uint64_t>() ^ tag_of(frame, key, nonce)) == 0;
}

}  // namespace unisono::bootstrap

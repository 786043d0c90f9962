// SPDX-License-Identifier: BSD-3-Clause
// For tests of the bootstrap: ranks whose messages the test sends, on hosts that may not exist.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/clock.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "bootstrap/rendezvous/message_stream.hpp"
#include "bootstrap/socket.hpp"
#include "transport/ip/ip.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::test {

inline HostId host_of(char letter) {
  HostId host{};
  host.fill(letter);
  return host;
}

// The Hello of a rank on that host.
inline Hello hello_from(const HostId& host, std::uint32_t rank, std::uint32_t ranks) {
  Hello hello;
  hello.nonce = *random_nonce();
  hello.host = host;
  hello.kernel = {.id = 1, .cores = 2};
  hello.rank = rank;
  hello.ranks = ranks;
  hello.memory_bytes = 1 << 20;
  hello.endpoint = *transport::parse_endpoint("10.0.0.1:4000");
  hello.endpoint.port = static_cast<std::uint16_t>(4000 + rank);
  hello.max_payload = 1472;
  hello.relay_socket = rank + 1;
  return hello;
}

class RawRank {
 public:
  static base::Descriptor connect_to(const Address& address) {
    auto socket = try_connect(address, base::now_ns() + 30 * base::kSecond);
    EXPECT_TRUE(socket.ok() && socket->has_value()) << address_text(address);
    return std::move(**socket);
  }
  RawRank(base::Descriptor connected, const Hello& hello) : hello_(hello) {
    stream_.emplace(std::move(connected));
    const auto first = stream_->receive(base::now_ns() + 30 * base::kSecond);
    EXPECT_TRUE(first.ok() && first->has_value());
    received_bytes_ += (*first)->frame.size();
    challenge_ = std::get<Challenge>((*first)->message).nonce;
    send(hello);
  }
  RawRank(const Address& address, const Hello& hello) : RawRank(connect_to(address), hello) {}
  RawRank(const Host& host, const Hello& hello) : RawRank(host.job(0, 1).address, hello) {}

  // Signed, as a relay sends Hellos of other ranks.
  void send(const Message& message) {
    std::string frame = encode(message);
    sign(frame, wire::key_of(kKey), challenge_);
    EXPECT_TRUE(stream_->send(frame).ok());
  }
  template <class Kind>
  Kind receive() {
    auto answer = stream_->receive(base::now_ns() + 30 * base::kSecond);
    if (!answer.ok() || !answer->has_value()) {
      ADD_FAILURE() << "rank " << hello_.rank << " gets no message";
      return {};
    }
    received_bytes_ += (*answer)->frame.size();
    EXPECT_TRUE(signature_is_right((*answer)->frame, wire::key_of(kKey), hello_.nonce));
    const Kind* kind = std::get_if<Kind>(&(*answer)->message);
    if (kind != nullptr) return *kind;
    const Refused* refused = std::get_if<Refused>(&(*answer)->message);
    ADD_FAILURE() << "rank " << hello_.rank << ": "
                  << (refused != nullptr ? refused->text : "another kind of message");
    return {};
  }
  void expect_end() {
    const auto end = stream_->receive(base::now_ns() + 30 * base::kSecond);
    EXPECT_TRUE(end.ok() && !end->has_value() && stream_->closed()) << "rank " << hello_.rank;
  }
  int descriptor() const { return stream_->socket().get(); }
  base::Descriptor take_attached() { return stream_->take_attached(); }
  // As if its process had died.
  void disconnect() { stream_.reset(); }
  std::size_t received_bytes() const { return received_bytes_; }

 private:
  Hello hello_;
  Nonce challenge_{};
  std::optional<MessageStream> stream_;
  std::size_t received_bytes_ = 0;
};

inline void expect_text(const Refused& refused, base::Code code, std::string_view part) {
  EXPECT_EQ(refused.code, code) << refused.text;
  EXPECT_NE(refused.text.find(part), std::string::npos) << refused.text;
}

inline void expect_refused(RawRank& rank, base::Code code, std::string_view part) {
  const auto refused = rank.receive<Refused>();
  EXPECT_EQ(refused.hello, Nonce{});
  expect_text(refused, code, part);
}

}  // namespace unisono::bootstrap::test

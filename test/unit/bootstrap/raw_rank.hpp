// SPDX-License-Identifier: BSD-3-Clause
// For tests of the bootstrap: ranks of whom the test is the voice, on hosts that there may not be.
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
#include "bootstrap/rendezvous/line.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "transport/udp/ip.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::test {

inline HostId host_of(char letter) {
  HostId host{};
  host.fill(letter);
  return host;
}

// What a rank would say that is somewhere else.
inline Hello hello_from(const HostId& host, std::uint32_t rank, std::uint32_t ranks) {
  Hello hello;
  hello.nonce = *random_nonce();
  hello.host = host;
  hello.rank = rank;
  hello.ranks = ranks;
  hello.memory_bytes = 1 << 20;
  hello.endpoint = *transport::parse_endpoint("10.0.0.1:4000");
  hello.endpoint.port = static_cast<std::uint16_t>(4000 + rank);
  hello.max_payload = 1472;
  hello.door = rank + 1;
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
    line_.emplace(std::move(connected));
    const auto greeting = line_->receive(base::now_ns() + 30 * base::kSecond);
    EXPECT_TRUE(greeting.ok() && greeting->has_value());
    heard_bytes_ += (*greeting)->frame.size();
    challenge_ = std::get<Challenge>((*greeting)->message).nonce;
    say(hello);
  }
  RawRank(const Address& address, const Hello& hello) : RawRank(connect_to(address), hello) {}
  RawRank(const Host& host, const Hello& hello) : RawRank(host.job(0, 1).address, hello) {}

  // Signed, as a gate says Hello for others.
  void say(const Message& message) {
    std::string frame = encode(message);
    sign(frame, wire::key_of(kKey), challenge_);
    EXPECT_TRUE(line_->send(frame).ok());
  }
  template <class Kind>
  Kind hear() {
    auto answer = line_->receive(base::now_ns() + 30 * base::kSecond);
    if (!answer.ok() || !answer->has_value()) {
      ADD_FAILURE() << "rank " << hello_.rank << " hears nothing";
      return {};
    }
    heard_bytes_ += (*answer)->frame.size();
    EXPECT_TRUE(signature_is_right((*answer)->frame, wire::key_of(kKey), hello_.nonce));
    const Kind* kind = std::get_if<Kind>(&(*answer)->message);
    if (kind != nullptr) return *kind;
    const Refused* refused = std::get_if<Refused>(&(*answer)->message);
    ADD_FAILURE() << "rank " << hello_.rank << ": "
                  << (refused != nullptr ? refused->text : "another kind of message");
    return {};
  }
  void expect_end() {
    const auto end = line_->receive(base::now_ns() + 30 * base::kSecond);
    EXPECT_TRUE(end.ok() && !end->has_value() && line_->closed()) << "rank " << hello_.rank;
  }
  int descriptor() const { return line_->socket().get(); }
  base::Descriptor take_attached() { return line_->take_attached(); }
  // As if its process died.
  void hang_up() { line_.reset(); }
  std::size_t heard_bytes() const { return heard_bytes_; }

 private:
  Hello hello_;
  Nonce challenge_{};
  std::optional<Line> line_;
  std::size_t heard_bytes_ = 0;
};

inline void expect_text(const Refused& refused, base::Code code, std::string_view part) {
  EXPECT_EQ(refused.code, code) << refused.text;
  EXPECT_NE(refused.text.find(part), std::string::npos) << refused.text;
}

inline void expect_refused(RawRank& rank, base::Code code, std::string_view part) {
  const auto refused = rank.hear<Refused>();
  EXPECT_EQ(refused.hello, Nonce{});
  expect_text(refused, code, part);
}

}  // namespace unisono::bootstrap::test

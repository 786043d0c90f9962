// SPDX-License-Identifier: BSD-3-Clause
// bootstrap: the wire form of the messages, their tags, and what is rejected.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/prng.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/identity.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "harness/network_namespace.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap::message_test {
namespace {

Nonce nonce_of(char letter) {
  Nonce nonce{};
  nonce.fill(letter);
  return nonce;
}

transport::Endpoint endpoint_at(const std::string& text) {
  return *transport::parse_endpoint(text);
}

Hello some_hello() {
  return {.nonce = nonce_of('n'),
          .host = nonce_of('h'),
          .rank = 2,
          .ranks = 5,
          .memory_bytes = 1 << 20,
          .memory_layout = 0x0123456789abcdef,
          .endpoint = endpoint_at("10.0.0.2:4000"),
          .max_payload = 1472,
          .relay_socket = 0x123,
          .kernel = {.id = 0x456, .cores = 8},
          .settings = ";on;;64K;;;;",
          .warnings = 7};
}

Hello hello_of_failure() {
  Hello hello = some_hello();
  hello.failure = base::Code::argument;
  hello.failure_text = "UNISONO_BUFFERS=\"junk\" is not valid";
  return hello;
}

Welcome welcome_with(std::vector<WelcomeMember> members) {
  return {.memory_bytes = 1 << 20,
          .job = "job",
          .job_id = 0xfedcba9876543210,
          .hosts = 1,
          .max_payload = 0,
          .shared_cores = 0,
          .members = std::move(members),
          .differing_settings = "UNISONO_LEARN: rank 1 has on, all others have off",
          .warnings = 7};
}

Welcome one_host() { return welcome_with({{11, 0, {}}, {12, 0, {}}, {13, 0, {}}}); }

// The rendezvous is on host 1.
Welcome three_hosts() {
  Welcome welcome = welcome_with({{0, 0, endpoint_at("[fd00::1]:4000")},
                                  {0, 0, endpoint_at("[fd00::1]:4001")},
                                  {12, 1, endpoint_at("[fd00::2]:4000")},
                                  {0, 2, endpoint_at("[fd00::3]:4000")},
                                  {13, 1, endpoint_at("[fd00::2]:4001")}});
  welcome.hosts = 3;
  welcome.max_payload = 1452;
  welcome.shared_cores = 4;
  welcome.rank_zero_serves = true;
  return welcome;
}

std::vector<Message> one_of_each() {
  return {Challenge{nonce_of('c')},
          some_hello(),
          hello_of_failure(),
          one_host(),
          three_hosts(),
          Refused{base::Code::timeout, "missing rank 1", {}},
          Refused{base::Code::argument, "rank 1 was claimed twice", nonce_of('n')},
          Redirect{"name", nonce_of('h'), kNoRelay},
          Redirect{"name", nonce_of('h'), 3},
          Withdrawal{nonce_of('n'), Withdrawal::Reason::ended},
          Withdrawal{nonce_of('n'), Withdrawal::Reason::unseen_pid},
          Withdrawal{nonce_of('n'), Withdrawal::Reason::failed, base::Code::system, "no socket"}};
}

TEST(BootstrapMessage, RoundTrip) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    const auto decoded = decode(frame + "behind");
    ASSERT_TRUE(decoded.ok());
    ASSERT_TRUE(decoded->has_value());
    EXPECT_EQ((*decoded)->message, message);
    EXPECT_EQ((*decoded)->frame_bytes, frame.size());
  }
}

// Messages of another version are refused at their header, so a fuzzer would see nothing else.
TEST(BootstrapMessage, TheCorpusOfTheFuzzerHasAMessageOfEachType) {
  const auto tests = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  const auto corpus = tests / "fuzz" / "corpus" / "bootstrap_message";
  std::set<std::size_t> types;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded.ok()) << entry.path() << ": " << decoded.error().message;
    ASSERT_TRUE(decoded->has_value()) << entry.path();
    EXPECT_EQ((*decoded)->frame_bytes, bytes.size()) << entry.path();
    types.insert((*decoded)->message.index());
  }
  EXPECT_EQ(types.size(), std::variant_size_v<Message>);
}

TEST(BootstrapMessage, WireFormIsFixedAndLittleEndian) {
  const std::string frame = encode(Refused{base::Code::timeout, "ab", {}});
  std::string expected("UNIS\x07\0\x04\0\x22\0\0\0\x06\0\0\0\x02\0\0\0ab", 22);
  expected += std::string(sizeof(Nonce) + 8, '\0');
  EXPECT_EQ(frame, expected);
  EXPECT_EQ(encode(some_hello()).size(), kHelloFrameBytes);
  EXPECT_EQ(encode(hello_of_failure()).size(), kHelloFrameBytes);
}

TEST(BootstrapMessage, LongTextsOfAHelloAreCutAndCannotHarmATerminal) {
  Hello hello = hello_of_failure();
  hello.failure_text = "\x1b[2J" + std::string(kMostFailureBytes, 'x');
  const std::string frame = encode(hello);
  EXPECT_EQ(frame.size(), kHelloFrameBytes);
  const auto decoded = decode(frame);
  ASSERT_TRUE(decoded.ok() && decoded->has_value());
  EXPECT_EQ(std::get<Hello>((*decoded)->message).failure_text,
            " [2J" + std::string(kMostFailureBytes - 4, 'x'));
  std::string padded = encode(hello_of_failure());
  padded[kHelloFrameBytes - 8 - 8 - kMostSettingsBytes - 4 - 1] = 'x';  // behind the text
  EXPECT_FALSE(decode(padded).ok());
}

TEST(BootstrapMessage, APartNeedsMoreBytes) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      const auto decoded = decode(std::string_view(frame).substr(0, length));
      ASSERT_TRUE(decoded.ok()) << length;
      ASSERT_FALSE(decoded->has_value()) << length;
    }
  }
}

TEST(BootstrapMessage, RejectsMalformedBytes) {
  const std::string frame = encode(some_hello());
  const auto with = [&frame](std::size_t position, char byte) {
    std::string changed = frame;
    changed[position] = byte;
    return changed;
  };
  EXPECT_FALSE(decode(with(0, 'X')).ok());      // magic
  EXPECT_FALSE(decode(with(4, 9)).ok());        // version
  EXPECT_FALSE(decode(with(6, 77)).ok());       // type
  EXPECT_FALSE(decode(with(8, 1)).ok());        // length
  EXPECT_FALSE(decode(with(11, 0x7f)).ok());    // length, far too long
  EXPECT_FALSE(decode(with(44, 5)).ok());       // rank 5 of 5
  EXPECT_FALSE(decode(with(51, 1)).ok());       // more ranks than possible
  EXPECT_FALSE(decode(with(59, 1)).ok());       // more memory than possible
  EXPECT_FALSE(decode(with(68, 5)).ok());       // an address of no family
  EXPECT_FALSE(decode(with(69, 1)).ok());       // the same
  EXPECT_FALSE(decode(with(72, '\xe0')).ok());  // a multicast address
  EXPECT_FALSE(decode(with(87, 1)).ok());       // more than an IPv4 address has
  EXPECT_FALSE(decode(with(90, 1)).ok());       // longer than a datagram can be
  EXPECT_FALSE(decode("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok());
}

bool is_accepted(const Message& message) { return decode(encode(message)).ok(); }

TEST(BootstrapMessage, MeaninglessContentIsRejected) {
  EXPECT_FALSE(is_accepted(Refused{base::Code::ok, "fine", {}}));
  EXPECT_FALSE(is_accepted(Redirect{"", nonce_of('h'), kNoRelay}));
  EXPECT_TRUE(is_accepted(Redirect{"name", nonce_of('h'), kMostRanks - 1}));
  EXPECT_FALSE(is_accepted(Redirect{"name", nonce_of('h'), kMostRanks}));
  EXPECT_FALSE(is_accepted(Withdrawal{nonce_of('n'), Withdrawal::Reason{0}}));
  EXPECT_FALSE(is_accepted(Withdrawal{nonce_of('n'), Withdrawal::Reason{4}}));
  EXPECT_FALSE(is_accepted(Withdrawal{nonce_of('n'), Withdrawal::Reason::failed}));
  EXPECT_FALSE(
      is_accepted(Withdrawal{nonce_of('n'), Withdrawal::Reason::ended, base::Code::system, ""}));
  EXPECT_FALSE(
      is_accepted(Withdrawal{nonce_of('n'), Withdrawal::Reason::ended, base::Code::ok, "text"}));
  Hello hello = some_hello();
  hello.nonce = {};  // in a Refused, zeros stand for no Hello
  EXPECT_FALSE(is_accepted(hello));
  hello = some_hello();
  hello.kernel.id = 0;
  EXPECT_FALSE(is_accepted(hello));
  hello = some_hello();
  hello.kernel.cores = 0;
  EXPECT_FALSE(is_accepted(hello));
  hello.kernel.cores = kMostCores;
  EXPECT_TRUE(is_accepted(hello));
  hello.kernel.cores = kMostCores + 1;
  EXPECT_FALSE(is_accepted(hello));
}

TEST(BootstrapMessage, AnEndpointIsWholeOrMissing) {
  Hello hello = some_hello();
  hello.endpoint = {};
  EXPECT_FALSE(is_accepted(hello));  // a length of datagrams without an address
  hello.max_payload = 0;
  EXPECT_TRUE(is_accepted(hello));
  hello.endpoint.address = endpoint_at("10.0.0.2:1").address;
  EXPECT_FALSE(is_accepted(hello));  // an address without a port
  hello.endpoint.port = 4000;
  EXPECT_FALSE(is_accepted(hello));  // of no length
  hello.max_payload = kMostPayload;
  EXPECT_TRUE(is_accepted(hello));
  hello.endpoint.address = {};
  EXPECT_FALSE(is_accepted(hello));  // 0.0.0.0
  hello.endpoint.address = endpoint_at("fd00::1").address;
  EXPECT_TRUE(is_accepted(hello));
  hello.endpoint.address = endpoint_at("ff12::1").address;
  EXPECT_FALSE(is_accepted(hello));
}

TEST(BootstrapMessage, AnInconsistentWelcomeIsRejected) {
  const auto changed = [](Welcome welcome, const auto& change) {
    change(welcome);
    return is_accepted(welcome);
  };
  using W = Welcome&;
  EXPECT_FALSE(changed(one_host(), [](W w) { w.memory_bytes = 0; }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.members.clear(); }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.members[1].pid = 0; }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.members[1].pid = 0x80000000; }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.hosts = 0; }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.max_payload = 1472; }));
  EXPECT_FALSE(changed(one_host(), [](W w) { w.shared_cores = 1; }));
  EXPECT_TRUE(changed(three_hosts(), [](W w) { w.shared_cores = 0; }));  // on several machines
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.shared_cores = kMostCores + 1; }));
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.hosts = 2; }));
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.hosts = 4; }));
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.hosts = 6; }));
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.max_payload = 0; }));
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.max_payload = kMostPayload + 1; }));
  EXPECT_FALSE(
      changed(three_hosts(), [](W w) { w.members[0].host = 1; }));  // not in the order of ranks
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.members[3].pid = 14; }));  // pids on two hosts
  EXPECT_FALSE(
      changed(three_hosts(), [](W w) { w.members[4].pid = 0; }));  // a host with a pid missing
  EXPECT_FALSE(changed(three_hosts(), [](W w) { w.members[1].endpoint = {}; }));
  // A launcher may serve the rendezvous on a host without ranks.
  EXPECT_TRUE(changed(one_host(), [](W w) {
    for (WelcomeMember& member : w.members) member.pid = 0;
  }));
  EXPECT_TRUE(changed(three_hosts(), [](W w) { w.members[2].pid = w.members[4].pid = 0; }));
}

TEST(BootstrapMessage, TheLargestWelcomeIsWithinTheLimits) {
  Welcome welcome = welcome_with({});
  for (std::uint32_t rank = 0; rank < kMostRanks; ++rank) {
    welcome.members.push_back({rank == 0 ? 1U : 0U, rank, endpoint_at("[fd00::1]:65535")});
  }
  welcome.hosts = kMostRanks;
  welcome.max_payload = 1452;
  EXPECT_TRUE(is_accepted(welcome));
}

TEST(BootstrapMessage, AnotherVersionIsNamed) {
  std::string frame = encode(Challenge{});
  frame[4] = 9;
  const auto decoded = decode(frame);
  ASSERT_FALSE(decoded.ok());
  EXPECT_NE(decoded.error().message.find("version 9"), std::string::npos);
}

TEST(BootstrapMessage, AWelcomeWithAWrongCountIsRejected) {
  Welcome welcome = one_host();
  welcome.differing_settings = "";
  std::string frame = encode(welcome);
  const std::size_t count_at = 12 + 8 + 4 + 3 + 8 + 4 + 4 + 4 + 4 + 8 + 4;
  ASSERT_EQ(frame[count_at], 3);
  for (const char count : {'\0', '\2', '\4', '\177'}) {
    frame[count_at] = count;
    EXPECT_FALSE(decode(frame).ok()) << static_cast<int>(count);
  }
}

TEST(BootstrapMessage, TextIsCutAndMadePrintable) {
  const auto decoded =
      decode(encode(Refused{base::Code::state, "a\x1b[31m\n" + std::string(10000, 'x'), {}}));
  ASSERT_TRUE(decoded.ok() && decoded->has_value());
  const auto& refused = std::get<Refused>((*decoded)->message);
  EXPECT_EQ(refused.text.size(), kMostTextBytes);
  EXPECT_EQ(refused.text.substr(0, 8), "a [31m x");
}

TEST(BootstrapMessage, RandomBytesBehindAGoodHeaderDoNoHarm) {
  base::Prng prng(11);
  int accepted = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const std::vector<Message> messages = one_of_each();
    std::string frame = encode(messages[prng.below(messages.size())]);
    for (std::uint64_t changes = prng.below(4) + 1; changes > 0; --changes) {
      frame[12 + prng.below(frame.size() - 12)] = static_cast<char>(prng.next());
    }
    const auto decoded = decode(frame);
    if (decoded.ok() && decoded->has_value()) {
      ++accepted;
      EXPECT_LE((*decoded)->frame_bytes, frame.size());
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(BootstrapMessage, TagNeedsKeyNonceAndEveryByte) {
  const wire::Key key = wire::key_of("a secret of some length");
  std::string frame = encode(some_hello());
  sign(frame, key, nonce_of('s'));
  EXPECT_TRUE(signature_is_right(frame, key, nonce_of('s')));
  EXPECT_FALSE(signature_is_right(frame, key, nonce_of('t')));
  EXPECT_FALSE(signature_is_right(frame, wire::key_of("a secret of some lengtH"), nonce_of('s')));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::string changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_FALSE(signature_is_right(changed, key, nonce_of('s'))) << i;
  }
  EXPECT_FALSE(signature_is_right("short", key, nonce_of('s')));
}

TEST(BootstrapMessage, LimitsAreThoseOfTheSettings) {
  EXPECT_EQ(kMostRanks, static_cast<std::uint32_t>(base::setting_row(base::Setting::size).maximum));
  EXPECT_EQ(kMostMemoryBytes,
            static_cast<std::uint64_t>(base::setting_row(base::Setting::shared_limit).maximum));
}

TEST(BootstrapAddress, FormsAreReadAndWritten) {
  for (const char* text : {"unix:@some-name", "tcp:127.0.0.1:4242", "tcp:[::1]:80", "tcp:host:0"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address_text(*address), text);
  }
  for (const std::string& text :
       {std::string(), std::string("unix:@"), std::string("unix:/tmp/x"), std::string("tcp:1"),
        std::string("tcp::1"), std::string("tcp:h:"), std::string("tcp:h:65536"),
        std::string("tcp:h:1x"), std::string("tcp:[]:1"), "unix:@" + std::string(108, 'x')}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, base::Code::argument);
    EXPECT_NE(address.error().message.find("unix:@NAME"), std::string::npos);
  }
}

TEST(BootstrapAddress, ANetworkNamespaceIsAHostOfItsOwn) {
  const HostId outside = *own_host_id();
  const Kernel kernel = *own_kernel();
  EXPECT_GE(kernel.cores, 1U);
  {
    const auto inside = harness::NetworkNamespace::enter();
    if (!inside.ok()) GTEST_SKIP() << inside.error().message;
    EXPECT_NE(*own_host_id(), outside);
    EXPECT_EQ(*own_kernel(), kernel);
  }
  EXPECT_EQ(*own_host_id(), outside);
}

TEST(BootstrapAddress, RelaysHaveAddressesOfTheirOwn) {
  EXPECT_EQ(address_text(relay_address(1)), "unix:@unisono-relay-0000000000000001");
  EXPECT_NE(relay_address(1).name, relay_address(2).name);
  EXPECT_LE(relay_address(~std::uint64_t{0}).name.size(), kMostNameBytes);
}

TEST(BootstrapAddress, RandomThingsDiffer) {
  EXPECT_NE(address_text(*random_unix_address()), address_text(*random_unix_address()));
  EXPECT_NE(*random_nonce(), *random_nonce());
  EXPECT_NE(*random_job_key(), *random_job_key());
  EXPECT_EQ(random_job_key()->size(), 32U);
  EXPECT_EQ(*own_host_id(), *own_host_id());
}

}  // namespace
}  // namespace unisono::bootstrap::message_test

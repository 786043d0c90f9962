// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/exchange: rounds over an allgather, and what a wrong one delivers. The choice of a
// rendezvous: one host; many ranks as if on several hosts, whose key spreads in several rounds.
#include "bootstrap/exchange/exchange_rounds.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/exchange/exchange_rendezvous.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "harness/fake_exchange.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::exchange_rounds_test {
namespace {

using base::Code;
using base::Error;
using base::Result;
using harness::FakeExchange;
using Texts = Result<std::vector<std::string>>;

// Each rank in a thread; gives what the ranks' bodies return.
template <class Value>
std::vector<Value> on_ranks(FakeExchange& exchange, int ranks,
                            const std::function<Value(ExchangeRounds&)>& body) {
  std::vector<std::optional<Value>> values(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      FakeExchange::End end = exchange.end(rank);
      ExchangeRounds rounds(
          [&end](const void* input, void* output, std::size_t bytes) {
            return end.allgather(input, output, bytes);
          },
          rank, ranks);
      values[static_cast<std::size_t>(rank)].emplace(body(rounds));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Value> all;
  for (auto& value : values) all.push_back(std::move(*value));
  return all;
}

std::vector<Texts> gather_ranks(FakeExchange& exchange, int ranks) {
  return on_ranks<Texts>(exchange, ranks, [](ExchangeRounds& rounds) {
    return rounds.gather("text of " + std::to_string(rounds.rank()));
  });
}

void expect_error(const base::Error& error, Code code, const std::string& part) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(ExchangeRounds, AllRanksGetAllTexts) {
  FakeExchange exchange(3);
  for (const Texts& texts : gather_ranks(exchange, 3)) {
    ASSERT_TRUE(texts.ok()) << texts.error().message;
    EXPECT_EQ(*texts, (std::vector<std::string>{"text of 0", "text of 1", "text of 2"}));
  }
}

TEST(ExchangeRounds, ATextOfTheGreatestLengthArrivesAndALongerOneIsCut) {
  FakeExchange exchange(2);
  const auto all = on_ranks<Texts>(exchange, 2, [](ExchangeRounds& rounds) {
    const std::size_t more = rounds.rank() == 0 ? 0 : 5;
    return rounds.gather(std::string(ExchangeRounds::kMostTextBytes + more, 'x'));
  });
  for (const Texts& texts : all) {
    ASSERT_TRUE(texts.ok());
    for (const std::string& text : *texts) {
      EXPECT_EQ(text, std::string(ExchangeRounds::kMostTextBytes, 'x'));
    }
  }
}

TEST(ExchangeRounds, AnErrorOfARankIsAnErrorOfAllAndEndsTheRounds) {
  FakeExchange exchange(3, [](int, int step, std::span<std::byte>) {
    EXPECT_EQ(step, 1);  // no call after the error
    return 0;
  });
  const auto results = on_ranks<base::Status>(exchange, 3, [](ExchangeRounds& rounds) {
    const base::Status first = rounds.agree(
        rounds.rank() == 1 ? base::Status(Error{Code::resources, "no room"}) : base::success());
    EXPECT_FALSE(first.ok());
    return rounds.agree(base::success());
  });
  expect_error(results[0].error(), Code::resources, "rank 1: no room");
  EXPECT_EQ(results[1].error().message, "no room");
  expect_error(results[2].error(), Code::resources, "rank 1: no room");
}

TEST(ExchangeRounds, AFailedAllgatherIsAnErrorThatNamesTheStep) {
  FakeExchange exchange(1, [](int, int, std::span<std::byte>) { return 17; });
  expect_error(gather_ranks(exchange, 1)[0].error(), Code::system, "returned 17 in step 1");
}

TEST(ExchangeRounds, RecordsInTheWrongOrderAreAnError) {
  FakeExchange exchange(2, [](int, int, std::span<std::byte> output) {
    std::swap_ranges(output.begin(),
                     output.begin() + static_cast<std::ptrdiff_t>(output.size() / 2),
                     output.begin() + static_cast<std::ptrdiff_t>(output.size() / 2));
    return 0;
  });
  for (const Texts& texts : gather_ranks(exchange, 2)) {
    expect_error(texts.error(), Code::argument, "in the order of ranks");
  }
}

TEST(ExchangeRounds, BytesThatNoRankGaveAreAnError) {
  FakeExchange exchange(2, [](int, int, std::span<std::byte> output) {
    std::fill(output.begin(), output.end(), std::byte{0xa5});
    return 0;
  });
  for (const Texts& texts : gather_ranks(exchange, 2)) {
    expect_error(texts.error(), Code::unsupported, "did not deliver");
  }
}

// The numbers of rank 1 arrive as a processor of the other byte order writes them.
TEST(ExchangeRounds, AnotherByteOrderIsAnErrorThatNamesTheHost) {
  FakeExchange exchange(2, [](int, int, std::span<std::byte> output) {
    const auto second = output.subspan(output.size() / 2);
    std::ranges::reverse(second.first(sizeof(std::uint64_t)));
    return 0;
  });
  std::array<char, 64> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  for (const Texts& texts : gather_ranks(exchange, 2)) {
    expect_error(texts.error(), Code::unsupported,
                 std::string("rank 1 on host '") + host.data() + "' has another byte order");
    expect_error(texts.error(), Code::unsupported, "start the job on hosts of one byte order");
  }
}

TEST(ExchangeRounds, RanksThatWereToldDifferentSizesGetAnError) {
  FakeExchange exchange(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&exchange, rank] {
      FakeExchange::End end = exchange.end(rank);
      // Rank 1 counts a third rank, for which the exchange delivers nothing.
      ExchangeRounds rounds(
          [&end](const void* input, void* output, std::size_t bytes) {
            return end.allgather(input, output, bytes);
          },
          rank, 2 + rank);
      const Texts texts = rounds.gather(std::string("here"));
      expect_error(texts.error(), Code::argument, "was told that the job has 3 ranks");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ExchangeRendezvous, RanksOnOneHostMeetAtAUnixSocketWithoutAKey) {
  FakeExchange exchange(3);
  const auto all = on_ranks<Result<ChosenRendezvous>>(exchange, 3, [](ExchangeRounds& rounds) {
    return choose_rendezvous_by_exchange(rounds, test::settings_with("60s"));
  });
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ASSERT_TRUE(all[rank].ok()) << all[rank].error().message;
    EXPECT_EQ(all[rank]->address.kind, Address::Kind::unix_name);
    EXPECT_EQ(all[rank]->address.name, all[0]->address.name);
    EXPECT_EQ(all[rank]->key, "");
    EXPECT_EQ(all[rank]->listener.valid(), rank == 0);
  }
}

// Changes rank r's host in what all ranks get in the first step, so that they take each other for
// ranks on several hosts. The address is one of documentation (RFC 5737).
FakeExchange::Hook as_if_on_hosts(int ranks) {
  return [ranks](int, int step, std::span<std::byte> output) {
    if (step != 1) return 0;
    char* const all = reinterpret_cast<char*>(output.data());
    const std::size_t stride = output.size() / static_cast<std::size_t>(ranks);
    // A record begins with numbers; the first of rank 0 has no '/'.
    const std::size_t text = std::string_view(all, stride).find('/') - 2 * sizeof(HostId);
    for (std::size_t rank = 0; std::cmp_less(rank, ranks); ++rank) {
      char* const place = all + rank * stride + text;
      HostValue host = *parse_host_value(place);
      host.host[0] = static_cast<char>(rank);
      host.addresses = {*transport::parse_ip("192.0.2." + std::to_string(1 + rank))};
      const std::string value = format_value(host);
      std::memcpy(place, value.c_str(), value.size() + 1);
    }
    return 0;
  };
}

class KeyOverRounds : public testing::TestWithParam<int> {};

TEST_P(KeyOverRounds, AllRanksOnSeveralHostsGetTheSameKey) {
  const int ranks = GetParam();
  FakeExchange exchange(ranks, as_if_on_hosts(ranks));
  const auto all = on_ranks<Result<ChosenRendezvous>>(exchange, ranks, [](ExchangeRounds& rounds) {
    return choose_rendezvous_by_exchange(rounds, test::settings_with("60s"));
  });
  if (!all[0].ok()) {
    GTEST_SKIP() << "this machine has no route for the test: " << all[0].error().message;
  }
  for (const Result<ChosenRendezvous>& chosen : all) {
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    EXPECT_EQ(chosen->address.kind, Address::Kind::tcp);
    EXPECT_EQ(chosen->key.size(), 32U);
    EXPECT_EQ(chosen->key, all[0]->key);
  }
}

// One, two and three rounds of keys.
INSTANTIATE_TEST_SUITE_P(Ranks, KeyOverRounds, testing::Values(2, 12, 13, 150));

TEST(ExchangeRendezvous, InvalidSettingsOfARankAreAnErrorOfAll) {
  FakeExchange exchange(2);
  const auto all = on_ranks<Result<ChosenRendezvous>>(exchange, 2, [](ExchangeRounds& rounds) {
    const Result<base::Settings> settings = rounds.rank() == 0
                                                ? Result<base::Settings>(test::settings_with("60s"))
                                                : base::Settings::from({{"UNISONO_SPIN", "much"}});
    return choose_rendezvous_by_exchange(rounds, settings);
  });
  for (const auto& chosen : all) expect_error(chosen.error(), Code::argument, "UNISONO_SPIN");
}

}  // namespace
}  // namespace unisono::bootstrap::exchange_rounds_test

// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/kvs/choose_rendezvous_address over a key-value store of the test's own: its values do
// not reveal the job's key, and a changed value is an error. With real launchers:
// net/launcher_test.py.
#include "bootstrap/kvs/choose_rendezvous_address.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/join.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "unit/bootstrap/fake_launcher.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap::choose_rendezvous_address_test {
namespace {

using base::Code;
using base::Result;
using test::FakeLauncher;
using test::settings_with;

// More than a value holds sealed keys for.
constexpr int kRanks = static_cast<int>(kSealedInValue) + 3;

struct RankResult {
  Result<JobInfo> info;
  std::string key;  // of the job, as this rank has it
};

// All ranks choose an address, and join the job there with this start timeout.
std::vector<RankResult> choose_and_join(const FakeLauncher& launcher, int ranks,
                                        const std::string& timeout, const std::string& key = "") {
  std::vector<std::optional<RankResult>> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto& result = results[static_cast<std::size_t>(rank)];
      const auto store = open_store(launcher.options(rank));
      if (!store.ok()) return void(result.emplace(RankResult{store.error(), ""}));
      auto chosen = choose_rendezvous_address(**store, {rank, ranks, key}, settings_with("60s"));
      if (!chosen.ok()) return void(result.emplace(RankResult{chosen.error(), ""}));
      JobDescription job;
      job.rank = rank;
      job.ranks = ranks;
      job.address = chosen->address;
      job.key = chosen->key;
      Result<JobInfo> info = join(job, settings_with(timeout), std::move(chosen->listener));
      result.emplace(RankResult{std::move(info), job.key});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<RankResult> all;
  for (auto& result : results) all.push_back(std::move(*result));
  return all;
}

// Neither as digits nor as bytes, in either order of bytes.
void expect_absent(const std::string& value, const std::string& secret_digits) {
  const auto has = [&value](const std::string& part) {
    return value.find(part) != std::string::npos;
  };
  std::string bytes;
  std::string reversed_digits;
  for (std::size_t i = 0; i < secret_digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(secret_digits.substr(i, 2), nullptr, 16));
    reversed_digits.insert(0, secret_digits.substr(i, 2));
  }
  EXPECT_FALSE(has(secret_digits) || has(bytes) || has(reversed_digits)) << value;
}

TEST(ChooseRendezvousAddress, TheStoreDoesNotRevealTheKeyThatAllRanksGet) {
  FakeLauncher launcher(kRanks);
  const auto results = choose_and_join(launcher, kRanks, "60s");
  for (const RankResult& each : results) {
    ASSERT_TRUE(each.info.ok()) << each.info.error().message;
    EXPECT_EQ(each.key, results[0].key);
    EXPECT_EQ(each.info->key.low, results[0].info->key.low);
    EXPECT_EQ(each.info->key.high, results[0].info->key.high);
  }
  EXPECT_EQ(results[0].key.size(), 32U);
  const wire::Key job_key = wire::key_of(results[0].key);
  const wire::Key packets = results[0].info->key;
  EXPECT_EQ(launcher.values().size(), kRanks + 1U + 2U) << "hosts, the address, sealed keys";
  for (const auto& [key, value] : launcher.values()) {
    expect_absent(value, results[0].key);
    for (const std::uint64_t half : {job_key.low, job_key.high, packets.low, packets.high}) {
      expect_absent(value, fmt::format("{:016x}", half));
    }
  }
}

TEST(ChooseRendezvousAddress, TwoJobsGetDifferentKeys) {
  std::vector<std::string> keys;
  for (int job = 0; job < 2; ++job) {
    FakeLauncher launcher(2);
    for (const RankResult& each : choose_and_join(launcher, 2, "60s")) {
      ASSERT_TRUE(each.info.ok()) << each.info.error().message;
      keys.push_back(each.key);
    }
  }
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(keys[2], keys[3]);
  EXPECT_NE(keys[0], keys[2]);
}

TEST(ChooseRendezvousAddress, AKeyOfTheUserWins) {
  FakeLauncher launcher(3);
  for (const RankResult& each :
       choose_and_join(launcher, 3, "60s", "a key that the user has set")) {
    ASSERT_TRUE(each.info.ok()) << each.info.error().message;
    EXPECT_EQ(each.key, "a key that the user has set");
  }
}

std::string with_other_key(const HostValue& value, const PublicKey& key) {
  HostValue changed = value;
  changed.key = key;
  return format_value(changed);
}

// All ranks get an error: `finders` report the change, the others that ranks are missing.
void expect_errors(const std::vector<RankResult>& results,
                   const std::vector<std::size_t>& finders) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const Result<JobInfo>& info = results[rank].info;
    ASSERT_FALSE(info.ok()) << rank;
    if (std::ranges::find(finders, rank) != finders.end()) {
      EXPECT_EQ(info.error().code, Code::state) << info.error().message;
      EXPECT_NE(info.error().message.find("in the launcher's key-value store"), std::string::npos)
          << info.error().message;
    } else {
      // Rank 0 may have given up before a slow rank connects.
      EXPECT_TRUE(info.error().code == Code::timeout || info.error().code == Code::rank_lost)
          << info.error().message;
    }
  }
}

TEST(ChooseRendezvousAddress, AChangedPublicKeyOfARankIsAnErrorForAll) {
  const PublicKey other = EphemeralKeys::make()->public_key();
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-host-2" ? with_other_key(*parse_host_value(value), other) : value;
  });
  const auto results = choose_and_join(launcher, 3, "500ms");
  expect_errors(results, {2});
  test::expect_error(results[0].info, Code::timeout, "missing rank");
}

TEST(ChooseRendezvousAddress, AChangedPublicKeyOfRankZeroIsAnErrorForAll) {
  const PublicKey other = EphemeralKeys::make()->public_key();
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    if (key != "unisono-address-0") return value;
    auto address = std::get<RendezvousAddress>(*parse_address_value(value));
    address.key = other;
    return format_value(AddressValue(address));
  });
  expect_errors(choose_and_join(launcher, 3, "500ms"), {1, 2});
}

TEST(ChooseRendezvousAddress, AWeakPublicKeyIsReportedToAll) {
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-host-1" ? with_other_key(*parse_host_value(value), {}) : value;
  });
  for (const RankResult& each : choose_and_join(launcher, 3, "10min")) {
    test::expect_error(each.info, Code::state, "rank 1: a published public key");
  }
}

TEST(ChooseRendezvousAddress, AMissingSealedKeyIsAnError) {
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-sealed0-0" ? value.substr(0, value.find(',')) : value;
  });
  const auto results = choose_and_join(launcher, 3, "500ms");
  test::expect_error(results[2].info, Code::state, "rank 2 of 3: rank 0 has sealed no key for it");
  EXPECT_FALSE(results[0].info.ok() || results[1].info.ok());
}

}  // namespace
}  // namespace unisono::bootstrap::choose_rendezvous_address_test

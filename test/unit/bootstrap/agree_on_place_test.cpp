// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/kvs/agree_on_place over a board that the test keeps: what stands there tells nobody
// the job's key, and what is changed there is an error. With real launchers: net/launcher_test.py.
#include "bootstrap/kvs/agree_on_place.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/join.hpp"
#include "bootstrap/kvs/place_note.hpp"
#include "unit/bootstrap/fake_launcher.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Result;
using test::FakeLauncher;
using test::settings_with;

// More than there are in a note.
constexpr int kRanks = static_cast<int>(kSealedInNote) + 3;

struct Outcome {
  Result<JobInfo> info;
  JobDescription job;  // as agreed on
};

// All ranks agree, and join the job at the place, for which they wait so long.
std::vector<Outcome> agree_and_join(const FakeLauncher& launcher, int ranks,
                                    const std::string& timeout, const std::string& key = "") {
  std::vector<std::optional<Outcome>> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      JobDescription job;
      job.rank = rank;
      job.ranks = ranks;
      job.board = launcher.options(rank);
      job.key = key;
      Result<base::Descriptor> listener = agree_on_place(job, settings_with("60s"));
      Result<JobInfo> info = listener.ok() ? join(job, settings_with(timeout), std::move(*listener))
                                           : Result<JobInfo>(listener.error());
      outcomes[static_cast<std::size_t>(rank)].emplace(Outcome{std::move(info), job});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Outcome> result;
  for (auto& outcome : outcomes) result.push_back(std::move(*outcome));
  return result;
}

// Neither as digits nor as bytes, in either order of bytes.
void expect_absent(const std::string& note, const std::string& secret_digits) {
  const auto has = [&note](const std::string& part) {
    return note.find(part) != std::string::npos;
  };
  std::string bytes;
  std::string reversed_digits;
  for (std::size_t i = 0; i < secret_digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(secret_digits.substr(i, 2), nullptr, 16));
    reversed_digits.insert(0, secret_digits.substr(i, 2));
  }
  EXPECT_FALSE(has(secret_digits) || has(bytes) || has(reversed_digits)) << note;
}

TEST(AgreeOnPlace, TheBoardDoesNotTellTheKeyThatAllRanksGet) {
  FakeLauncher launcher(kRanks);
  const auto outcomes = agree_and_join(launcher, kRanks, "60s");
  for (const Outcome& each : outcomes) {
    ASSERT_TRUE(each.info.ok()) << each.info.error().message;
    EXPECT_EQ(each.job.key, outcomes[0].job.key);
    EXPECT_EQ(each.info->key.low, outcomes[0].info->key.low);
    EXPECT_EQ(each.info->key.high, outcomes[0].info->key.high);
  }
  EXPECT_EQ(outcomes[0].job.key.size(), 32U);
  const wire::Key job_key = wire::key_of(outcomes[0].job.key);
  const wire::Key packets = outcomes[0].info->key;
  EXPECT_EQ(launcher.notes().size(), kRanks + 1U + 2U) << "hosts, the place, sealed keys";
  for (const auto& [key, note] : launcher.notes()) {
    expect_absent(note, outcomes[0].job.key);
    for (const std::uint64_t half : {job_key.low, job_key.high, packets.low, packets.high}) {
      expect_absent(note, fmt::format("{:016x}", half));
    }
  }
}

TEST(AgreeOnPlace, TwoJobsGetDifferentKeys) {
  std::vector<std::string> keys;
  for (int job = 0; job < 2; ++job) {
    FakeLauncher launcher(2);
    for (const Outcome& each : agree_and_join(launcher, 2, "60s")) {
      ASSERT_TRUE(each.info.ok()) << each.info.error().message;
      keys.push_back(each.job.key);
    }
  }
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_EQ(keys[2], keys[3]);
  EXPECT_NE(keys[0], keys[2]);
}

TEST(AgreeOnPlace, AKeyOfTheUserHolds) {
  FakeLauncher launcher(3);
  for (const Outcome& each : agree_and_join(launcher, 3, "60s", "a key that the user has set")) {
    ASSERT_TRUE(each.info.ok()) << each.info.error().message;
    EXPECT_EQ(each.job.key, "a key that the user has set");
  }
}

std::string with_other_key(const HostNote& note, const PublicKey& key) {
  HostNote changed = note;
  changed.key = key;
  return write_note(changed);
}

// All end with an error: those who find the change say so, the others miss them at the rendezvous.
void expect_errors(const std::vector<Outcome>& outcomes, const std::vector<std::size_t>& finders) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Result<JobInfo>& info = outcomes[rank].info;
    ASSERT_FALSE(info.ok()) << rank;
    if (std::ranges::find(finders, rank) != finders.end()) {
      EXPECT_EQ(info.error().code, Code::state) << info.error().message;
      EXPECT_NE(info.error().message.find("on the launcher's board"), std::string::npos)
          << info.error().message;
    } else {
      // Rank 0 may have given up before a slow one comes.
      EXPECT_TRUE(info.error().code == Code::timeout || info.error().code == Code::rank_lost)
          << info.error().message;
    }
  }
}

TEST(AgreeOnPlace, APublicKeyOfARankThatWasChangedIsAnErrorForAll) {
  const PublicKey other = EphemeralKeys::make()->public_key();
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-host-2" ? with_other_key(*read_host_note(value), other) : value;
  });
  const auto outcomes = agree_and_join(launcher, 3, "500ms");
  expect_errors(outcomes, {2});
  test::expect_error(outcomes[0].info, Code::timeout, "missing rank");
}

TEST(AgreeOnPlace, APublicKeyOfRankZeroThatWasChangedIsAnErrorForAll) {
  const PublicKey other = EphemeralKeys::make()->public_key();
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    if (key != "unisono-place-0") return value;
    auto place = std::get<MeetingPlace>(*read_place_note(value));
    place.key = other;
    return write_note(PlaceNote(place));
  });
  expect_errors(agree_and_join(launcher, 3, "500ms"), {1, 2});
}

TEST(AgreeOnPlace, AWeakPublicKeyIsToldToAll) {
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-host-1" ? with_other_key(*read_host_note(value), {}) : value;
  });
  for (const Outcome& each : agree_and_join(launcher, 3, "10min")) {
    test::expect_error(each.info, Code::state, "rank 1: a public key on the launcher's board");
  }
}

TEST(AgreeOnPlace, ASealedKeyThatIsMissingIsAnError) {
  FakeLauncher launcher(3, [&](const std::string& key, const std::string& value) {
    return key == "unisono-sealed0-0" ? value.substr(0, value.find(',')) : value;
  });
  const auto outcomes = agree_and_join(launcher, 3, "500ms");
  test::expect_error(outcomes[2].info, Code::state, "rank 2 of 3: rank 0 has sealed no key for it");
  EXPECT_FALSE(outcomes[0].info.ok() || outcomes[1].info.ok());
}

}  // namespace
}  // namespace unisono::bootstrap

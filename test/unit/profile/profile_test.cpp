// SPDX-License-Identifier: BSD-3-Clause
// Profiles: the buckets of times (histogram, series), the limit of kinds, the file (text), and
// calls of several threads at once.
#include "profile/profile.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "harness/scale.hpp"
#include "harness/temporary_folder.hpp"
#include "profile/histogram.hpp"
#include "profile/series.hpp"
#include "profile/text.hpp"

#if defined(UNISONO_TEST_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace unisono::profile::profile_test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines(const std::string& path) {
  std::istringstream text(content(path));
  std::vector<std::string> all;
  for (std::string line; std::getline(text, line);) all.push_back(line);
  return all;
}

Kind kind(int number) {
  Kind kind;
  kind.collective = "allreduce";
  kind.algorithm = "ring(" + std::to_string(number) + ")";
  kind.ranks = 4;
  return kind;
}

TEST(Histogram, EveryTimeLiesInItsBucket) {
  for (std::size_t i = 0; i + 1 < kBuckets; ++i) {
    ASSERT_LT(bucket_begin(i), bucket_begin(i + 1)) << i;
    ASSERT_EQ(bucket_of(bucket_begin(i)), i);
    ASSERT_EQ(bucket_of(bucket_begin(i + 1) - 1), i);
  }
  EXPECT_EQ(bucket_of(-1), 0U);
  EXPECT_EQ(bucket_of(std::numeric_limits<std::int64_t>::max()), kBuckets - 1);
}

TEST(Histogram, BoundsOfABucketDifferByAQuarterAtMost) {
  for (std::size_t i = 4; i + 1 < kBuckets; ++i) {
    const std::int64_t begin = bucket_begin(i);
    ASSERT_LE((bucket_begin(i + 1) - begin) * 4, begin) << i;
  }
}

TEST(Series, TotalsAreThoseOfTheSamples) {
  Series series;
  series.add({.bytes = 8, .ns = 100, .waited_ns = -1, .predicted_ns = 90});
  series.add({.bytes = 24, .ns = 300, .waited_ns = 200, .predicted_ns = -1});
  const Series::Totals totals = series.totals();
  EXPECT_EQ(totals.calls, 2);
  EXPECT_EQ(totals.bytes, 32);
  EXPECT_EQ(totals.least_bytes, 8);
  EXPECT_EQ(totals.most_bytes, 24);
  EXPECT_EQ(totals.ns, 400);
  EXPECT_EQ(totals.least_ns, 100);
  EXPECT_EQ(totals.most_ns, 300);
  EXPECT_EQ(totals.predicted_ns, 90);
  EXPECT_EQ(totals.unpredicted, 1);
  EXPECT_EQ(totals.waits, 1);
  EXPECT_EQ(totals.waited_ns, 200);
  EXPECT_EQ(totals.buckets[bucket_of(100)], 1);
  EXPECT_EQ(totals.buckets[bucket_of(300)], 1);
}

TEST(Profile, SizeClassesArePowersOfTwo) {
  EXPECT_EQ(size_class(0), 0);
  EXPECT_EQ(size_class(1), 1);
  EXPECT_EQ(size_class(7), 4);
  EXPECT_EQ(size_class(8), 8);
  EXPECT_EQ(size_class(std::numeric_limits<std::int64_t>::max()), std::int64_t{1} << 62);
}

TEST(Profile, EqualKindsShareARow) {
  const test::TemporaryFolder folder;
  Profile profile(folder.path() + "/p", {.rank = 0, .ranks = 4, .job = "j", .machine = "m"});
  Row& row = profile.row(kind(1));
  EXPECT_EQ(&profile.row(kind(1)), &row);
  EXPECT_NE(&profile.row(kind(2)), &row);
}

// The limit, and one and two more.
TEST(Profile, KindsBeyondTheLimitAreCountedTogether) {
  const test::TemporaryFolder folder;
  Profile profile(folder.path() + "/p", {.rank = 0, .ranks = 4, .job = "j", .machine = "m"});
  const auto call = [&](int number) -> Row& {
    Row& row = profile.row(kind(number));
    row.of(Form::blocking).add({.bytes = 8, .ns = 10});
    return row;
  };
  constexpr int kMost = static_cast<int>(Profile::kMostKinds);
  for (int i = 0; i < kMost; ++i) EXPECT_EQ(call(i).kind, kind(i));
  profile.write();
  EXPECT_EQ(content(profile.path()).find("others"), std::string::npos);
  EXPECT_EQ(call(kMost).kind.collective, "others");
  EXPECT_EQ(&call(kMost + 1), &profile.row(kind(kMost)));
  EXPECT_EQ(call(0).kind, kind(0));
  profile.write();
  const std::vector<std::string> all = lines(profile.path());
  ASSERT_EQ(all.size(), Profile::kMostKinds + 3);
  EXPECT_NE(all[all.size() - 2].find(R"("collective":"others")"), std::string::npos);
  EXPECT_NE(all[all.size() - 2].find(R"("calls":2,)"), std::string::npos);
}

TEST(Profile, TheFileIsIncompleteUntilTheEnd) {
  const test::TemporaryFolder folder;
  const Origin origin{.rank = 3, .ranks = 4, .job = "a \"b\"\n", .machine = "m"};
  {
    Profile profile(folder.path() + "/p", origin);
    profile.row(kind(1)).of(Form::started).add({.bytes = 8, .ns = 10});
    profile.row(kind(2));  // planned only
    EXPECT_EQ(content(folder.path() + "/p.3").find("end"), std::string::npos);
    profile.write();
  }
  const std::vector<std::string> all = lines(folder.path() + "/p.3");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NE(all[0].find(R"("rank":3,"ranks":4,"job":"a \"b\"\u000a",)"), std::string::npos)
      << all[0];
  EXPECT_NE(all[1].find(R"("form":"started")"), std::string::npos) << all[1];
  EXPECT_EQ(all[2] + "\n", last_line(1));
}

TEST(Profile, WhatIsSavedMeanwhileIsNotTheEnd) {
  const test::TemporaryFolder folder;
  Profile profile(folder.path() + "/p", {.rank = 0, .ranks = 1, .job = "j", .machine = "m"});
  profile.row(kind(1));  // planned only
  profile.save();
  EXPECT_EQ(lines(profile.path()).size(), 1U);
  profile.row(kind(1)).of(Form::blocking).add({.bytes = 8, .ns = 10});
  profile.save();
  EXPECT_EQ(lines(profile.path()).back() + "\n", last_line(1, {}, false));
  profile.write();
  EXPECT_EQ(lines(profile.path()).back() + "\n", last_line(1));
  profile.save();  // nothing new
  EXPECT_EQ(lines(profile.path()).back() + "\n", last_line(1));
  profile.row(kind(2)).of(Form::blocking).add({.bytes = 8, .ns = 10});
  profile.save();
  EXPECT_EQ(lines(profile.path()).back() + "\n", last_line(2, {}, false));
  // No other file is left: `p.*` are the ranks'.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Profile, AKilledRankLeavesItsCalls) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/p.0";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Origin origin{.rank = 0, .ranks = 1, .job = "j", .machine = "m"};
    Profile& profile = join_profile(folder.path() + "/p", origin);
    profile.begin_job();
    profile.row(kind(1)).of(Form::blocking).add({.bytes = 8, .ns = 10});
    while (content(path).find(last_line(1, {}, false)) == std::string::npos) {
      std::this_thread::yield();
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_NE(content(path).find(R"("algorithm":"ring)"), std::string::npos);
  EXPECT_EQ(lines(path).back() + "\n", last_line(1, {}, false));
}

// As in MPI_Abort, at once; also in a handler of a signal that came while the rank held a lock.
TEST(Profile, WhatIsAskedForIsSavedAtOnce) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/p";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Profile& profile = join_profile(file, {.rank = 0, .ranks = 1, .job = "j", .machine = "m"});
    profile.begin_job();
    for (int i = 1; i <= 3; ++i) {
      profile.row(kind(i)).of(Form::blocking).add({.bytes = 8, .ns = 10});
      save_profiles();
      const std::string end = last_line(static_cast<std::size_t>(i), {}, false);
      if (content(profile.path()).find(end) == std::string::npos) _exit(i);
    }
    const pid_t grandchild = fork();  // it has none to save, and does not wait
    if (grandchild == 0) {
      save_profiles();
      _exit(0);
    }
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lines(file + ".0").back() + "\n", last_line(3, {}, false));
}

TEST(Profile, AFolderThatIsMissingIsAWarning) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/missing/p";
  std::string warning;
  {
    testing::internal::CaptureStderr();
    Profile profile(file, {.rank = 1, .ranks = 4, .job = "j", .machine = "m"});
    profile.row(kind(1)).of(Form::blocking).add({.bytes = 8, .ns = 10});
    profile.write();
    warning = testing::internal::GetCapturedStderr();
  }
  EXPECT_NE(warning.find(file + ".1: No such file or directory"), std::string::npos) << warning;
}

TEST(Profile, AChildOfForkWritesNothing) {
  const test::TemporaryFolder folder;
  Profile profile(folder.path() + "/p", {.rank = 0, .ranks = 1, .job = "j", .machine = "m"});
  const std::string before = content(profile.path());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    profile.write();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(content(profile.path()), before);
}

// A program that calls exit() without unisono_finalize.
TEST(Profile, ExitWritesTheFile) {
  const test::TemporaryFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Origin origin{.rank = 0, .ranks = 1, .job = "j", .machine = "m"};
    Profile& profile = join_profile(folder.path() + "/p", origin);
    profile.begin_job();
    profile.row(kind(1)).of(Form::blocking).add({.bytes = 8, .ns = 10});
    std::exit(0);  // NOLINT(concurrency-mt-unsafe)
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(content(folder.path() + "/p.0").find(last_line(1)), std::string::npos);
}

// The thread that saves the parent's is not in the child.
TEST(Profile, AChildOfForkMayJoinAJobOfItsOwn) {
  if (harness::kThreadSanitizer) {
    GTEST_SKIP() << "the thread sanitizer ends a child of fork() that starts a thread";
  }
  const test::TemporaryFolder folder;
  const Origin origin{.rank = 0, .ranks = 1, .job = "j", .machine = "m"};
  {
#if defined(UNISONO_TEST_ASAN)
    // The state of that thread is a leak in a process without the thread.
    const __lsan::ScopedDisabler its_state_is_left_to_the_parent;
#endif
    join_profile(folder.path() + "/parent", origin);
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Profile& profile = join_profile(folder.path() + "/child", origin);
    profile.begin_job();
    profile.row(kind(1)).of(Form::blocking).add({.bytes = 8, .ns = 10});
    std::exit(0);  // NOLINT(concurrency-mt-unsafe)
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(content(folder.path() + "/child.0").find(last_line(1)), std::string::npos);
}

TEST(Profile, JobsOfAProcessShareOne) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/p";
  const Origin first{.rank = 3, .ranks = 4, .job = "first", .machine = ""};
  const Origin second{.rank = 0, .ranks = 2, .job = "second", .machine = "m"};
  Profile& profile = join_profile(file, first);
  EXPECT_EQ(&join_profile(file, second), &profile);
  EXPECT_EQ(profile.origin().machine, "m");
  EXPECT_EQ(profile.origin().rank, 3);
  EXPECT_EQ(&join_profile(file, first), &profile);
  EXPECT_NE(&join_profile(folder.path() + "/q", first), &profile);
}

TEST(Profile, RanksThatAreThreadsHaveTheirOwn) {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/p";
  Profile& zero = join_profile(file, {.rank = 0, .ranks = 2, .job = "j", .machine = "m"});
  Profile& one = join_profile(file, {.rank = 1, .ranks = 2, .job = "j", .machine = "m"});
  EXPECT_NE(&zero, &one);
  EXPECT_EQ(&join_profile(file, {.rank = 1, .ranks = 2, .job = "j", .machine = "m"}), &one);
}

// Threads of different communicators, a reader, and new kinds meanwhile.
TEST(Profile, ThreadsCountAtOnce) {
  constexpr int kThreads = 4, kCalls = 5'000;
  const test::TemporaryFolder folder;
  Profile profile(folder.path() + "/p", {.rank = 0, .ranks = 4, .job = "j", .machine = "m"});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&profile, t] {
      Row& own = profile.row(kind(100 + t));
      for (int i = 1; i <= kCalls; ++i) {
        profile.row(kind(i % 10)).of(Form::blocking).add({.bytes = i, .ns = i, .predicted_ns = 1});
        own.of(Form::started).add({.bytes = 1, .ns = 1, .waited_ns = 1});
      }
    });
  }
  for (int i = 0; i < 20; ++i) profile.write();
  for (std::thread& thread : threads) thread.join();
  std::int64_t calls = 0, ns = 0;
  for (int i = 0; i < 10; ++i) {
    const Series::Totals totals = profile.row(kind(i)).of(Form::blocking).totals();
    calls += totals.calls;
    ns += totals.ns;
    EXPECT_EQ(totals.most_ns, i == 0 ? kCalls : kCalls - 10 + i);
    EXPECT_EQ(totals.least_ns, i == 0 ? 10 : i);
  }
  EXPECT_EQ(calls, kThreads * kCalls);
  EXPECT_EQ(ns, std::int64_t{kThreads} * kCalls * (kCalls + 1) / 2);
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(profile.row(kind(100 + t)).of(Form::started).totals().waits, kCalls);
  }
}

}  // namespace
}  // namespace unisono::profile::profile_test

// SPDX-License-Identifier: BSD-3-Clause
// Processes with different machine files of `unisono tune` choose alike: by that of rank 0.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "harness/outcome.hpp"
#include "harness/own_stderr.hpp"
#include "harness/temporary_folder.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "model/own_machine.hpp"
#include "process/ranks.hpp"

namespace unisono::harness::machine_file_test {
namespace {

constexpr int kRanks = 3;

class CacheFolders : public testing::Test {
 protected:
  // A cache folder for each rank, with a machine file of its own for some.
  std::string folder(int rank) const { return folder_.path() + "/" + std::to_string(rank); }
  std::string file(int rank) const { return model::own_machine_path(folder(rank) + "/unisono"); }

  void tune(int rank) const {
    model::Machine machine = model::default_machine();
    machine.name = "tuned by rank " + std::to_string(rank);
    machine.fingerprint = model::own_fingerprint(base::Settings());
    ASSERT_TRUE(model::write_own_machine(machine, folder(rank) + "/unisono").ok());
  }

  // Starts a job whose ranks have these folders. `log`: what each rank's log has to say.
  void expect_log(const std::vector<std::string>& log, const std::string& not_in_log) const {
    ProcessJob::Options options;
    options.joins = false;
    options.environment = {{"UNISONO_LOG", "debug"}};
    ProcessJob job(
        kRanks,
        [&](const ProcessRank& self) {
          setenv("XDG_CACHE_HOME", folder(self.rank).c_str(), 1);
          const OwnStderr own;
          unisono_comm_t world = nullptr;
          ASSERT_TRUE(succeeded(unisono_init(&world)));
          std::int32_t sum = 1;
          EXPECT_TRUE(succeeded(
              unisono_allreduce(UNISONO_IN_PLACE, &sum, 1, UNISONO_INT32, UNISONO_SUM, world)));
          EXPECT_EQ(sum, kRanks);
          EXPECT_TRUE(succeeded(unisono_finalize(world)));
          const std::string& wanted = log[static_cast<std::size_t>(self.rank)];
          EXPECT_NE(own.text().find(wanted), std::string::npos) << wanted << " in " << own.text();
          EXPECT_EQ(own.text().find(not_in_log), std::string::npos) << own.text();
        },
        options);
    job.expect_all_clean();
  }

  test::TemporaryFolder folder_;
};

using Ranges = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;

Ranges ranges(unisono_comm_t comm, const char* library) {
  Ranges found;
  const auto keep = [](const char* collective, std::int64_t from, std::int64_t up_to, void* user) {
    static_cast<Ranges*>(user)->emplace_back(collective, from, up_to);
  };
  EXPECT_TRUE(succeeded(unisono_faster_by_mpi(comm, library, keep, &found)));
  return found;
}

TEST_F(CacheFolders, AllRanksGetTheRangesOfAnMpiThatRank0Has) {
  model::Machine machine = model::default_machine();
  model::replace_host_mpi(machine, {"Some MPI v1", kRanks, 1, {{"gather", 0, 16}, {"scan", 9, 0}}});
  const std::string path = folder_.path() + "/machine.json";
  ASSERT_TRUE(model::write_machine_file(machine, path).ok());
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      kRanks,
      [&](const ProcessRank& self) {
        setenv("UNISONO_MACHINE", self.rank == 0 ? path.c_str() : "default", 1);
        unisono_comm_t world = nullptr, pair = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        int hosts = 0;
        EXPECT_TRUE(succeeded(unisono_comm_hosts(world, &hosts)));
        EXPECT_EQ(hosts, 1);
        EXPECT_EQ(ranges(world, "Some MPI v1"), (Ranges{{"gather", 0, 16}, {"scan", 9, 0}}));
        EXPECT_EQ(ranges(world, "Some MPI v2"), Ranges{});
        ASSERT_TRUE(succeeded(unisono_comm_split(world, self.rank == 2 ? 1 : 0, 0, &pair)));
        EXPECT_EQ(ranges(pair, "Some MPI v1"), Ranges{});
        EXPECT_TRUE(
            failed(unisono_comm_hosts(world, nullptr), UNISONO_ERROR_ARGUMENT, {"hosts is NULL"}));
        EXPECT_TRUE(failed(unisono_faster_by_mpi(world, "Some MPI v1", nullptr, nullptr),
                           UNISONO_ERROR_ARGUMENT, {"library or found is NULL"}));
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
        EXPECT_TRUE(failed(unisono_comm_hosts(world, &hosts), UNISONO_ERROR_STATE));
      },
      options);
  job.expect_all_clean();
}

TEST_F(CacheFolders, AllRanksGetTheNumbersOfBytesThatRank0Has) {
  const std::string path = folder_.path() + "/machine.json";
  model::Machine machine = model::default_machine();
  const auto row = static_cast<std::size_t>(model::Constant::exchange_from);
  model::Value& changed = machine.constants[row].value();
  const auto usual = static_cast<std::int64_t>(changed.number);
  changed.number = static_cast<double>(4 * usual);
  ASSERT_TRUE(model::write_machine_file(machine, path).ok());
  ProcessJob::Options options;
  options.joins = false;
  ProcessJob job(
      kRanks,
      [&](const ProcessRank& self) {
        setenv("UNISONO_MACHINE", self.rank == 0 ? path.c_str() : "default", 1);
        unisono_comm_t world = nullptr;
        ASSERT_TRUE(succeeded(unisono_init(&world)));
        std::int64_t bytes = 0;
        EXPECT_TRUE(succeeded(unisono_machine_bytes(world, "exchange_from", &bytes)));
        EXPECT_EQ(bytes, 4 * usual);
        EXPECT_TRUE(failed(unisono_machine_bytes(world, "rank_spin", &bytes),
                           UNISONO_ERROR_ARGUMENT, {"rank_spin"}));
        EXPECT_TRUE(failed(unisono_machine_bytes(world, "no_such_key", &bytes),
                           UNISONO_ERROR_ARGUMENT, {"no_such_key"}));
        EXPECT_TRUE(failed(unisono_machine_bytes(world, "exchange_from", nullptr),
                           UNISONO_ERROR_ARGUMENT, {"NULL"}));
        EXPECT_EQ(bytes, 4 * usual) << "an error leaves it alone";
        EXPECT_TRUE(succeeded(unisono_finalize(world)));
        EXPECT_TRUE(
            failed(unisono_machine_bytes(world, "exchange_from", &bytes), UNISONO_ERROR_STATE));
      },
      options);
  job.expect_all_clean();
}

TEST_F(CacheFolders, ThatOfRank0CountsForAll) {
  for (int rank = 0; rank < kRanks; ++rank) tune(rank);
  expect_log({"rank 0 chooses by the machine \"tuned by rank 0\"",
              "rank 1 chooses by the machine \"tuned by rank 0\"",
              "rank 2 chooses by the machine \"tuned by rank 0\""},
             "tuned by rank 1");
}

TEST_F(CacheFolders, WithADamagedFileTheJobGoesOnByTheDefaultMachine) {
  for (int rank = 0; rank < kRanks; ++rank) tune(rank);
  std::ofstream(file(0), std::ios::app) << "damage";
  expect_log({file(0) + ":", "", ""}, "chooses by the machine");
}

TEST_F(CacheFolders, AFileOfAnotherMachineIsRefusedWithANote) {
  tune(0);
  model::Machine other = model::default_machine();
  other.fingerprint = model::Fingerprint{"another", "0", ""};
  ASSERT_TRUE(model::write_own_machine(other, folder(0) + "/unisono").ok());
  expect_log({"made for machine \"another\"", "", ""}, "chooses by the machine");
}

TEST(MachineSetting, AFileThatCannotBeReadIsAnErrorOnEveryRank) {
  ProcessJob::Options options;
  options.joins = false;
  options.environment = {{"UNISONO_MACHINE", "/nowhere/machine.json"}};
  ProcessJob job(
      kRanks,
      [](const ProcessRank&) {
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(
            failed(unisono_init(&world), UNISONO_ERROR_SYSTEM,
                   {"UNISONO_MACHINE: /nowhere/machine.json", "No such file or directory"}));
        EXPECT_EQ(world, nullptr);
      },
      options);
  job.expect_all_clean();
}

// Rank 0 reads it. The others wait for rank 0, and the deadline of the start would be far.
TEST(MachineSetting, ADirectoryIsAnErrorOnEveryRank) {
  ProcessJob::Options options;
  options.joins = false;
  options.environment = {{"UNISONO_MACHINE", "/tmp"}};
  ProcessJob job(
      kRanks,
      [](const ProcessRank&) {
        unisono_comm_t world = nullptr;
        EXPECT_TRUE(failed(unisono_init(&world), UNISONO_ERROR_SYSTEM,
                           {"UNISONO_MACHINE: /tmp", "Is a directory"}));
        EXPECT_EQ(world, nullptr);
      },
      options);
  job.expect_all_clean();
}

TEST_F(CacheFolders, WithADirectoryInPlaceOfTheFileTheJobGoesOnByTheDefaultMachine) {
  std::filesystem::create_directories(file(0));
  expect_log({file(0) + ": Is a directory", "", ""}, "chooses by the machine");
}

}  // namespace
}  // namespace unisono::harness::machine_file_test

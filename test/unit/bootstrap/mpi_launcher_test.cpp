// SPDX-License-Identifier: BSD-3-Clause
// bootstrap under real launchers: Open MPI's mpirun and MPICH's mpiexec start this very test
// program as ranks, each of which runs the disabled test below.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "bootstrap/bootstrap.hpp"
#include "unit/bootstrap/shared_memory_check.hpp"

namespace unisono::bootstrap::mpi_launcher_test {
namespace {

constexpr int kRanks = 3;

TEST(BootstrapUnderLauncher, DISABLED_Rank) {
  const base::Settings& settings = *base::process_settings();
  const auto job = describe_own_job(settings);
  ASSERT_TRUE(job.ok()) << job.error().message;
  const auto info = join_job(*job, settings);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->ranks, kRanks);
  EXPECT_EQ(
      std::set<int>({info->members[0].pid, info->members[1].pid, info->members[2].pid}).size(), 3U);
  EXPECT_TRUE(share_memory(*info));
  std::printf("rank %d of %d has joined the others\n", info->rank, info->ranks);
}

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

bool is_installed(const std::string& program) {
  return std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0;
}

// `wrapper` goes between the launcher and the program.
void expect_ranks_meet(const std::string& launcher, const std::string& wrapper) {
  const std::string command = fmt::format(
      "{} {} {} --gtest_also_run_disabled_tests "
      "--gtest_filter=BootstrapUnderLauncher.DISABLED_Rank "
      "2>&1",
      launcher, wrapper, own_program());
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string line = fmt::format("rank {} of {} has joined the others", rank, kRanks);
    EXPECT_NE(output.find(line), std::string::npos) << command << "\n" << output;
  }
}

TEST(BootstrapUnderLauncher, OpenMpi) {
  if (!is_installed("mpirun.openmpi")) GTEST_SKIP() << "mpirun.openmpi (Open MPI) is not installed";
  const char* root = geteuid() == 0 ? "--allow-run-as-root " : "";
  expect_ranks_meet(fmt::format("mpirun.openmpi {}--oversubscribe -n {}", root, kRanks), "");
}

TEST(BootstrapUnderLauncher, Mpich) {
  if (!is_installed("mpiexec.mpich")) GTEST_SKIP() << "mpiexec.mpich (MPICH) is not installed";
  const std::string launcher = fmt::format("mpiexec.mpich -n {}", kRanks);
  expect_ranks_meet(launcher, "");
  // A wrapper of its own for each rank hides the common parent.
  expect_ranks_meet(launcher, "sh -c '\"$0\" \"$@\"; exit $?'");
}

}  // namespace
}  // namespace unisono::bootstrap::mpi_launcher_test

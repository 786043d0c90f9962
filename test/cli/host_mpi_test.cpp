// SPDX-License-Identifier: BSD-3-Clause
// tools/mpirun/host_mpi: which MPI a launcher belongs to, by its --version, and its command line.
// With real launchers: test/frontend/mpi_test.py.
#include "mpirun/host_mpi.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace unisono::tools::host_mpi_test {
namespace {

using Words = std::vector<std::string>;

TEST(HostMpi, IsRecognizedByTheVersion) {
  const auto version = [](const std::string& text) {
    const auto found = recognize_mpi("/usr/bin/mpirun", text);
    return found.ok() ? found->version : found.error().message;
  };
  EXPECT_EQ(version("mpirun (Open MPI) 5.0.6\n\nReport bugs to ...\n"), "Open MPI 5.0.6");
  EXPECT_EQ(version("mpirun.openmpi (OpenRTE) 4.1.4\n"), "Open MPI 4.1.4");
  EXPECT_EQ(version("HYDRA build details:\n    Version:                                 4.0.2\n"),
            "MPICH 4.0.2");
  EXPECT_EQ(version("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 2024\n"),
            "Intel MPI 2021.13");
}

TEST(HostMpi, AnotherProgramIsAnErrorThatQuotesIt) {
  const auto found = recognize_mpi("/usr/bin/mpirun", "a wrapper of mine\nmore");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, base::Code::unsupported);
  EXPECT_NE(found.error().message.find("\"a wrapper of mine\""), std::string::npos)
      << found.error().message;
}

TEST(HostMpi, NoLauncherInTheFoldersIsAnError) {
  const auto found = find_host_mpi("/nowhere:/nowhere/else");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, base::Code::unsupported);
}

TEST(HostMpi, EachLauncherHandsThePreloadToItsRanks) {
  const HostMpi open_mpi{MpiKind::open_mpi, "/usr/bin/mpirun", "Open MPI 4.1.4"};
  const HostMpi mpich{MpiKind::hydra, "/usr/bin/mpirun", "MPICH 4.0.2"};
  EXPECT_EQ(launch_command(open_mpi, {{"LD_PRELOAD", "/lib/a.so"}}, {"-n", "2", "a"}),
            (Words{"/usr/bin/mpirun", "-x", "LD_PRELOAD=/lib/a.so", "-n", "2", "a"}));
  EXPECT_EQ(
      launch_command(mpich, {{"LD_PRELOAD", "/lib/a.so:/lib/tool.so"}, {"TUNE", "/tmp/t"}}, {"a"}),
      (Words{"/usr/bin/mpirun", "-genv", "LD_PRELOAD", "/lib/a.so:/lib/tool.so", "-genv", "TUNE",
             "/tmp/t", "a"}));
}

TEST(HostMpi, EachOfSeveralProgramsGetsThePreload) {
  const HostMpi open_mpi{MpiKind::open_mpi, "mpirun", "Open MPI 4.1.4"};
  const HostMpi mpich{MpiKind::hydra, "mpirun", "MPICH 4.0.2"};
  EXPECT_EQ(launch_command(open_mpi, {{"A", "b"}}, {"-n", "1", "x", ":", "-n", "2", "y"}),
            (Words{"mpirun", "-x", "A=b", "-n", "1", "x", ":", "-x", "A=b", "-n", "2", "y"}));
  EXPECT_EQ(launch_command(mpich, {{"A", "b"}}, {"x", ":", "y"}),
            (Words{"mpirun", "-genv", "A", "b", "x", ":", "y"}));
}

}  // namespace
}  // namespace unisono::tools::host_mpi_test

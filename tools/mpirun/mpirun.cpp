// SPDX-License-Identifier: BSD-3-Clause
// unisono mpirun: the mpirun in PATH, with the drop-in preloaded into the ranks. So an unmodified
// MPI program uses Unisono's collectives.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "base/settings/settings.hpp"
#include "commands.hpp"
#include "mpirun/host_mpi.hpp"

namespace unisono::tools {
namespace {

int run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "--") arguments.erase(arguments.begin());
  if (arguments.empty()) {
    fmt::print(stderr,
               "unisono mpirun: arguments of mpirun are missing, as in unisono mpirun -n 4 "
               "./program (see 'unisono mpirun --help')\n");
    return kExitUsage;
  }
  base::Environment environment = base::process_environment();
  const base::Result<HostMpi> mpi = find_host_mpi(environment["PATH"]);
  const base::Result<std::string> object = mpi.ok() ? find_drop_in() : mpi.error();
  if (!object.ok()) {
    fmt::print(stderr, "unisono mpirun: {}\n", object.error().message);
    return kExitFailure;
  }
  fmt::print(stderr, "unisono mpirun: {} ({})\n", mpi->version, mpi->path);
  std::vector<std::string> words = launch_command(*mpi, *object, environment["LD_PRELOAD"]);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(mpi->path.c_str(), pointers.data());
  fmt::print(stderr, "unisono mpirun: {}\n", base::system_error(mpi->path, errno).message);
  return kExitFailure;
}

}  // namespace

void add_mpirun(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "mpirun",
      "Run an unmodified MPI program with Unisono's collectives.\n\n"
      "It takes the mpirun in PATH, says which MPI that is, and preloads libunisono_mpi.so into "
      "the\n"
      "ranks. All arguments belong to that mpirun, as does the exit status. UNISONO_MPI=off turns "
      "the\n"
      "drop-in off; a list of collectives, such as UNISONO_MPI=alltoall,scan, leaves those to the "
      "MPI.");
  command->prefix_command();
  command->footer("Example:\n  unisono mpirun -n 4 ./program");
  command->callback([command, &exit_status] { exit_status = run(command->remaining()); });
}

}  // namespace unisono::tools

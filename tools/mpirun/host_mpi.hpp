// SPDX-License-Identifier: BSD-3-Clause
// The MPI whose mpirun is in PATH, and how its mpirun hands a variable to all ranks. Main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/settings/settings.hpp"

namespace unisono::tools {

enum class MpiKind { open_mpi, hydra };

struct HostMpi {
  MpiKind kind = MpiKind::open_mpi;
  std::string path;     // of mpirun, absolute
  std::string version;  // "Open MPI 4.1.4", "MPICH 4.0.2", for people
};

// By the output of `mpirun --version`. Error of code unsupported for another program.
base::Result<HostMpi> recognize_mpi(const std::string& path, const std::string& version_text);
// Runs the mpirun in one of the folders with --version. Errors: unsupported, system.
base::Result<HostMpi> find_host_mpi(const std::string& search_path);

// libunisono_mpi.so beside this tool's library folder. Error of code state if it is not there.
base::Result<std::string> find_drop_in();

// The command with the caller's arguments. All ranks get the variables, also those of further
// programs, which stand behind colons.
std::vector<std::string> launch_command(const HostMpi& mpi, const base::Environment& variables,
                                        const std::vector<std::string>& arguments);

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of the `unisono` binary: each file tools/<name>.cpp declares its options on the
// application and, when it is chosen, leaves the process's exit status in `exit_status`, which
// outlives the application. main() only registers them. Main thread only.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>

namespace unisono::tools {

// Exit statuses of every subcommand. A job that runs a foreign program (`unisono run`) hands on
// that program's own status instead.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;  // the work was done and the answer is no, or it failed
inline constexpr int kExitUsage = 2;    // the command line makes no sense

// The most that an argument may ask for.
inline constexpr int kMostRanks = 4096;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

void add_run(CLI::App& app, int& exit_status);
void add_bench(CLI::App& app, int& exit_status);
void add_check(CLI::App& app, int& exit_status);
void add_info(CLI::App& app, int& exit_status);
void add_explain(CLI::App& app, int& exit_status);
void add_show(CLI::App& app, int& exit_status);
void add_hosts(CLI::App& app, int& exit_status);
void add_nic(CLI::App& app, int& exit_status);
void add_mpirun(CLI::App& app, int& exit_status);
void add_topology(CLI::App& app, int& exit_status);
void add_sim(CLI::App& app, int& exit_status);
void add_paper(CLI::App& app, int& exit_status);
void add_tune(CLI::App& app, int& exit_status);
void add_profile(CLI::App& app, int& exit_status);
void add_generate(CLI::App& app, int& exit_status);

}  // namespace unisono::tools

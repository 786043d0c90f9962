// SPDX-License-Identifier: BSD-3-Clause
// unisono mpirun: the mpirun in PATH, with the drop-in preloaded into the ranks. So an unmodified
// MPI program uses Unisono's collectives. With --tune the drop-in first compares them with the
// MPI's own, and the machine file gets the ranges in which the MPI is faster. With --profile the
// table of the ranks' calls follows.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file/read_file.hpp"
#include "base/settings/settings.hpp"
#include "commands.hpp"
#include "mpirun/host_mpi.hpp"
#include "mpirun/measured.hpp"
#include "profile/job_files.hpp"
#include "profile/merge.hpp"
#include "profile/report.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Error;
using base::Result;
using Words = std::vector<std::string>;

// Returns only with an error.
Error become(Words words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(words.front().c_str(), pointers.data());
  return base::system_error(words.front(), errno);
}

// mpirun, once it runs.
volatile sig_atomic_t mpirun_process = 0;
void pass_on(int signal_number) { kill(mpirun_process, signal_number); }

// mpirun in a child that gets SIGTERM in place of this process, as if it were the same one.
Result<pid_t> start(const Words& words) {
  sigset_t terminate, before;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigprocmask(SIG_BLOCK, &terminate, &before);
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    fmt::print(stderr, "unisono mpirun: {}\n", become(words).message);
    _exit(kExitFailure);
  }
  const int why = errno;
  mpirun_process = child;
  if (child > 0) signal(SIGTERM, pass_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return base::system_error("fork", why);
  return child;
}

// The exit status of mpirun. Signals of the terminal are its business.
Result<int> run_to_end(const Words& words) {
  UNISONO_ASSIGN(const pid_t child, start(words));
  for (const int each : {SIGINT, SIGQUIT}) signal(each, SIG_IGN);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return base::system_error("waitpid", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A file of this process for rank 0, which goes with it.
class TimesFile {
 public:
  TimesFile() : path_((std::filesystem::temp_directory_path() / "unisono-mpi-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) {
      path_.clear();
    } else {
      close(file);
    }
  }
  ~TimesFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TimesFile(const TimesFile&) = delete;
  TimesFile& operator=(const TimesFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void print(const Measured& measured, const model::HostMpi& ranges) {
  fmt::print("{}, {} ranks on {} host{}: of {} cells, {} faster than Unisono\n", measured.library,
             measured.ranks, measured.hosts, measured.hosts == 1 ? "" : "s", measured.cells.size(),
             ranges.faster.empty() ? "none is" : "these ranges are");
  for (const model::ByteRange& range : ranges.faster) {
    const std::string end = range.up_to_bytes == 0 ? "" : fmt::format(" to {}", range.up_to_bytes);
    fmt::print("  {:<22} {}{} bytes\n", range.collective,
               fmt::format("{}{}", end.empty() ? "from " : "", range.from_bytes), end);
  }
}

base::Status keep_times(const std::string& path, const base::Settings& settings) {
  UNISONO_ASSIGN(const std::string text, base::read_file(path));
  if (text.empty()) {
    return Error{Code::state,
                 "nothing was measured; the program needs two ranks, a blocking collective of all "
                 "of them, and rank 0 on this host"};
  }
  UNISONO_ASSIGN(const Measured measured, parse_measured(text, path));
  const model::HostMpi ranges = ranges_of(measured);
  print(measured, ranges);
  UNISONO_ASSIGN(const std::string file, keep_ranges(settings, ranges));
  fmt::print("wrote {}\n", file);
  return base::success();
}

Result<int> tune(const HostMpi& mpi, base::Environment variables, const Words& arguments) {
  UNISONO_ASSIGN(const base::Settings settings, base::Settings::from(base::process_environment()));
  const TimesFile times;
  if (times.path().empty()) return base::system_error("a temporary file", errno);
  variables["UNISONO_MPI_TUNE"] = times.path();
  UNISONO_ASSIGN(const int status, run_to_end(launch_command(mpi, variables, arguments)));
  if (status != 0) return status;
  UNISONO_TRY(keep_times(times.path(), settings));
  return status;
}

// To stderr, as all that is not the program's own output. Files that other hosts have are named as
// missing.
void show_profile(const JobFiles& files, const std::string& name) {
  const std::vector<std::string> written = files.written();
  if (written.empty()) {
    fmt::print(stderr,
               "unisono mpirun: no rank has written {}.RANK here: the program ended before "
               "MPI_Init(), or its ranks have other folders\n",
               name);
    return;
  }
  const Result<MergedProfile> profile = read_profiles(written);
  if (!profile.ok()) {
    fmt::print(stderr, "unisono mpirun: {}\n", profile.error().message);
    return;
  }
  for (const std::string& each : profile->left_out) {
    fmt::print(stderr, "unisono mpirun: not in the profile: {}\n", each);
  }
  for (const std::string& each : profile->unfinished) {
    fmt::print(stderr, "unisono mpirun: without its last calls: {}\n", each);
  }
  fmt::print(stderr, "{}{}", profile_head(*profile), profile_table(profile->rows, kUsualRows));
}

Result<int> run_with_profile(const Words& words, const std::string& name) {
  const JobFiles files(name);
  UNISONO_ASSIGN(const int status, run_to_end(words));
  show_profile(files, name);
  return status;
}

Result<int> launch(bool tunes, const std::string& profile, const Words& arguments) {
  base::Environment environment = base::process_environment();
  UNISONO_ASSIGN(const HostMpi mpi, find_host_mpi(environment["PATH"]));
  UNISONO_ASSIGN(const std::string object, find_drop_in());
  fmt::print(stderr, "unisono mpirun: {} ({})\n", mpi.version, mpi.path);
  const std::string& preloaded = environment["LD_PRELOAD"];
  base::Environment variables = {
      {"LD_PRELOAD", preloaded.empty() ? object : object + ":" + preloaded}};
  if (!profile.empty()) {
    variables[std::string(base::setting_row(base::Setting::profile).name)] = profile;
  }
  if (tunes) return tune(mpi, variables, arguments);
  const Words command = launch_command(mpi, variables, arguments);
  if (!profile.empty()) return run_with_profile(command, profile);
  return become(command);
}

int run(const std::string& profile, Words arguments) {
  const bool tunes = !arguments.empty() && arguments.front() == "--tune";
  if (tunes) arguments.erase(arguments.begin());
  if (!arguments.empty() && arguments.front() == "--") arguments.erase(arguments.begin());
  if (arguments.empty()) {
    fmt::print(stderr,
               "unisono mpirun: arguments of mpirun are missing, as in unisono mpirun -n 4 "
               "./program (see 'unisono mpirun --help')\n");
    return kExitUsage;
  }
  const Result<int> status = launch(tunes, profile, arguments);
  if (status.ok()) return *status;
  fmt::print(stderr, "unisono mpirun: {}\n", status.error().message);
  return kExitFailure;
}

}  // namespace

void add_mpirun(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "mpirun",
      "Run an unmodified MPI program with Unisono's collectives\n\n"
      "It takes the mpirun in PATH, says which MPI that is, and preloads libunisono_mpi.so into "
      "the\n"
      "ranks. All arguments belong to that mpirun, as does the exit status. UNISONO_MPI=off turns "
      "the\n"
      "drop-in off; a list of collectives, such as UNISONO_MPI=alltoall,scan, leaves those to the "
      "MPI.\n"
      "With --tune as the first argument, the ranks first compare Unisono's collectives with\n"
      "the MPI's, which takes seconds. The machine file then says which calls the MPI does\n"
      "faster; later runs with as many ranks leave these to it.");
  auto profile = std::make_shared<std::string>();
  command->add_flag(
      "--profile{unisono-profile}", *profile,
      "Before mpirun's arguments: count and time the collectives, and show the table "
      "of unisono profile at the end. Each rank writes FILE.RANK. =FILE names another "
      "file than unisono-profile");
  command->prefix_command();
  command->footer(
      "Examples:\n  unisono mpirun -n 4 ./program\n  unisono mpirun --profile=p -n 4 ./program\n"
      "  unisono mpirun --tune -n 4 ./program");
  command->callback(
      [command, profile, &exit_status] { exit_status = run(*profile, command->remaining()); });
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "mpirun/host_mpi.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace unisono::tools {
namespace {

using base::Code;
using base::Error;
using base::Result;
namespace fs = std::filesystem;

std::string find_in_path(const std::string& path, const std::string& program) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = path.substr(at, end - at) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return "";
}

// The program's path comes from PATH: it is quoted for the shell.
Result<std::string> output_of(const std::string& path) {
  std::string quoted = "'";
  for (const char letter : path) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  quoted += "' --version 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(quoted.c_str(), "r"), pclose);
  if (pipe == nullptr) return base::system_error("popen", errno);
  std::string text;
  std::array<char, 512> part{};
  while (fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

// The word behind `label`.
std::string word_after(const std::string& text, std::string_view label) {
  const std::size_t at = text.find(label);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find_first_not_of(" \t", at + label.size());
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(" \t\n,", begin) - begin);
}

}  // namespace

Result<HostMpi> recognize_mpi(const std::string& path, const std::string& version_text) {
  std::string open_mpi = word_after(version_text, "(Open MPI)");
  // Under another name than mpirun.
  if (open_mpi.empty()) open_mpi = word_after(version_text, "(OpenRTE)");
  if (!open_mpi.empty()) return HostMpi{MpiKind::open_mpi, path, "Open MPI " + open_mpi};
  if (version_text.find("Intel(R) MPI") != std::string::npos) {
    const std::string version = word_after(version_text, "Version");
    return HostMpi{MpiKind::hydra, path, "Intel MPI " + version};
  }
  if (version_text.find("HYDRA") != std::string::npos) {
    return HostMpi{MpiKind::hydra, path, "MPICH " + word_after(version_text, "Version:")};
  }
  return Error{Code::unsupported,
               fmt::format("{} is neither Open MPI's nor MPICH's: its --version says \"{}\"", path,
                           version_text.substr(0, version_text.find('\n')))};
}

Result<HostMpi> find_host_mpi(const std::string& search_path) {
  for (const char* program : {"mpirun", "mpiexec"}) {
    const std::string path = find_in_path(search_path, program);
    if (path.empty()) continue;
    UNISONO_ASSIGN(const std::string text, output_of(path));
    return recognize_mpi(path, text);
  }
  return Error{Code::unsupported, "there is no mpirun and no mpiexec in PATH"};
}

Result<std::string> find_drop_in() {
  std::error_code failure;
  const fs::path tool = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return base::system_error("/proc/self/exe", failure.value());
  const fs::path prefix = tool.parent_path().parent_path();
  for (const char* folder : {UNISONO_LIBRARY_FOLDER, "lib"}) {
    fs::path object = prefix / folder / "libunisono_mpi.so";
    if (fs::exists(object, failure)) return object.string();
  }
  return Error{Code::state,
               fmt::format("libunisono_mpi.so is not in {}; install the library beside "
                           "the tool",
                           (prefix / UNISONO_LIBRARY_FOLDER).string())};
}

std::vector<std::string> launch_command(const HostMpi& mpi, const base::Environment& variables,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {mpi.path};
  const auto add_variables = [&] {
    for (const auto& [name, value] : variables) {
      switch (mpi.kind) {
        case MpiKind::open_mpi:
          words.insert(words.end(), {"-x", name + "=" + value});
          break;
        case MpiKind::hydra:
          words.insert(words.end(), {"-genv", name, value});
          break;
      }
    }
  };
  add_variables();
  for (const std::string& argument : arguments) {
    words.push_back(argument);
    // Open MPI's -x holds for one program, up to the colon; the other's holds for all.
    if (argument == ":" && mpi.kind == MpiKind::open_mpi) add_variables();
  }
  return words;
}

}  // namespace unisono::tools

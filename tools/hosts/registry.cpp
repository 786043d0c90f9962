// SPDX-License-Identifier: BSD-3-Clause
#include "hosts/registry.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>

#include "hosts/process_descriptor.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

constexpr const char* kFolders[] = {"/run/unisono", "/run/unisono/hosts"};
constexpr const char* kFolder = kFolders[1];

std::string path_of(const std::string& name) { return fmt::format("{}/{}", kFolder, name); }

Error system_error(const std::string& what) {
  return Error{Code::system, fmt::format("{}: {}", what, std::strerror(errno))};
}

// Whether `file` is still the file at its path: it may have been removed and created again.
bool is_current(const Descriptor& file, const std::string& path) {
  struct stat opened {};
  struct stat found {};
  return fstat(file.get(), &opened) == 0 && stat(path.c_str(), &found) == 0 &&
         opened.st_ino == found.st_ino && opened.st_dev == found.st_dev;
}

Result<std::string> read_all(const Descriptor& file) {
  std::string out;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count =
        pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(out.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read");
    if (count == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// The record of a set that lives; nullopt if there is none, or not yet. Removes a dead one's file.
Result<std::optional<HostsRecord>> living(const std::string& name) {
  const std::string path = path_of(name);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return std::optional<HostsRecord>();
    return system_error(path);
  }
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    if (is_current(file, path)) unlink(path.c_str());
    return std::optional<HostsRecord>();
  }
  UNISONO_ASSIGN(const std::string text, read_all(file));
  return parse_record(name, text);
}

Result<std::vector<std::string>> names_of_files() {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kFolder), closedir);
  if (folder == nullptr) {
    if (errno == ENOENT) return names;
    return system_error(kFolder);
  }
  while (const dirent* const entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string format_record(const HostsRecord& record) {
  std::string out = fmt::format("keeper {}\ninside {}\nshape {}\nrate {}\n", record.keeper,
                                record.inside, record.shape, record.rate);
  for (const HostEntry& host : record.hosts) {
    out += fmt::format("host {} {} {}\n", host.name, host.address, host.pid);
  }
  return out + "end\n";
}

std::optional<HostsRecord> parse_record(const std::string& name, const std::string& text) {
  HostsRecord record;
  record.name = name;
  std::istringstream in(text);
  std::string word;
  while (in >> word) {
    if (word == "end") return record;
    if (word == "keeper") {
      in >> record.keeper;
    } else if (word == "inside") {
      in >> record.inside;
    } else if (word == "shape") {
      in >> record.shape;
    } else if (word == "rate") {
      in >> record.rate;
    } else if (word == "host") {
      HostEntry host;
      in >> host.name >> host.address >> host.pid;
      record.hosts.push_back(std::move(host));
    } else {
      break;
    }
  }
  return std::nullopt;
}

Result<Descriptor> claim_hosts(const std::string& name) {
  for (const char* const folder : kFolders) {
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) return system_error(folder);
  }
  const std::string path = path_of(name);
  for (;;) {
    Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file.valid()) return system_error(path);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return Error{Code::state,
                   fmt::format("hosts named {0} are up already: take another --name, or remove "
                               "them with 'unisono hosts down {0}'",
                               name)};
    }
    if (!is_current(file, path)) continue;  // removed between the two calls
    if (ftruncate(file.get(), 0) != 0) return system_error(path);
    return file;
  }
}

void forget_hosts(const std::string& name) { unlink(path_of(name).c_str()); }

Result<std::vector<HostsRecord>> list_hosts() {
  std::vector<HostsRecord> records;
  UNISONO_ASSIGN(const std::vector<std::string> names, names_of_files());
  for (const std::string& name : names) {
    UNISONO_ASSIGN(std::optional<HostsRecord> record, living(name));
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

Result<HostsRecord> find_hosts(const std::string& name) {
  UNISONO_ASSIGN(std::vector<HostsRecord> records, list_hosts());
  if (name.empty()) {
    if (records.size() == 1) return std::move(records.front());
    if (records.empty()) {
      return Error{Code::argument, "no hosts are up: make some, as in unisono hosts up 4"};
    }
    return Error{Code::argument,
                 fmt::format("there are {} sets of hosts: say which with --name; 'unisono hosts "
                             "list' shows them",
                             records.size())};
  }
  for (HostsRecord& record : records) {
    if (record.name == name) return std::move(record);
  }
  return Error{Code::argument,
               fmt::format("no hosts named {} are up; 'unisono hosts list' shows which are", name)};
}

Status remove_hosts(const HostsRecord& record) {
  const Descriptor keeper = open_process(record.keeper);
  // It holds its lock, so the number was still the keeper's when the process was opened.
  UNISONO_ASSIGN(const std::optional<HostsRecord> now, living(record.name));
  if (!now || now->keeper != record.keeper || !keeper.valid()) return base::success();
  if (signal_process(keeper, SIGKILL) != 0 && errno != ESRCH) {
    return system_error(fmt::format("cannot end process {}", record.keeper));
  }
  // Process 1 of a pid namespace has ended when all others there have.
  pollfd ended{keeper.get(), POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  UNISONO_TRY(living(record.name));  // removes the file, unless a new set has the name already
  return base::success();
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/descriptor.hpp"

namespace unisono::daemon {
namespace {

using base::Code;
using base::Error;

// The name of an interface may have any bytes but '/' and blanks; the format takes UTF-8.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c > ' ' && c <= '~' ? c : '_';
  }
  return out;
}

std::string names_of(const std::vector<InterfaceSample>& interfaces) {
  std::string names;
  for (const InterfaceSample& interface : interfaces) {
    names += (names.empty() ? "" : ",") + interface.name;
  }
  return names;
}

class Text {
 public:
  // `all`: the label of what is counted for all interfaces.
  explicit Text(std::string all) : all_(std::move(all)) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = fmt::format("unisono_nic_{}", name);
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, type);
  }
  void sample(const std::string& interface, std::uint64_t value,
              const std::string& more_labels = "") {
    out_ += fmt::format("{}{{interface=\"{}\"{}}} {}\n", name_, label_value(interface), more_labels,
                        value);
  }
  void sample(std::uint64_t value) { sample(all_, value); }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    family(name, "gauge", help);
    sample(value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string all_;
  std::string name_;
  std::string out_;
};

// A family for each kind, so that the sum over a family has a meaning.
void add_counters(Text& text, const MetricsSample& sample, nic::CounterKind kind) {
  for (const InterfaceSample& interface : sample.interfaces) {
    for (std::size_t i = 0; i < interface.counters.size(); ++i) {
      const auto counter = static_cast<unisono_nic_counter>(i);
      if (nic::counter_kind(counter) != kind) continue;
      text.sample(interface.name, interface.counters[i],
                  fmt::format(",reason=\"{}\"", nic::counter_name(counter)));
    }
  }
}

Error failure(const std::string& what, const std::string& path) {
  return {Code::system,
          fmt::format("unisonod: {} {} (--metrics): {}", what, path, std::strerror(errno))};
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string metrics_text(const MetricsSample& sample) {
  Text text(names_of(sample.interfaces));
  text.gauge("up", "Whether the daemon serves; 0 is written when it ends.", sample.up ? 1 : 0);
  text.family("build_info", "gauge", "Version and mode; the value is 1.");
  for (const InterfaceSample& interface : sample.interfaces) {
    text.sample(interface.name, 1,
                fmt::format(",version=\"{}\",mode=\"{}\"", UNISONO_VERSION,
                            interface.native ? "native" : "generic"));
  }
  text.gauge("connections", "Connections of clients.", sample.connections);
  text.gauge("groups", "Groups of all users.", sample.groups);
  text.gauge("memory_bytes", "Memory of these groups.", sample.bytes);
  text.gauge("retained_memory_bytes", "Memory of ended groups that processes still have mapped.",
             sample.retained_bytes);
  text.family("passed_packets_total", "counter", "Packets of others that were passed on.");
  add_counters(text, sample, nic::CounterKind::passed);
  text.family("dropped_packets_total", "counter", "Packets that were dropped, by reason.");
  add_counters(text, sample, nic::CounterKind::dropped);
  text.family("handled_packets_total", "counter", "Packets of operations, by event.");
  add_counters(text, sample, nic::CounterKind::handled);
  text.family("wakeups_total", "counter", "Wake-ups of sleeping processes, by outcome.");
  add_counters(text, sample, nic::CounterKind::wakeup);
  nic::ServiceCounters::each(sample.service,
                             [&text](const char* name, const char* help, std::uint64_t value) {
                               text.family(fmt::format("{}_total", name), "counter", help);
                               text.sample(value);
                             });
  return text.take();
}

base::Status MetricsFile::write(const std::string& text) const {
  struct stat found = {};
  if (lstat(path_.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return Error{
        Code::argument,
        fmt::format("unisonod: {} (--metrics) is not a regular file; name a new one", path_)};
  }
  const std::string temporary = path_ + ".tmp";
  // A killed daemon may have left one. O_EXCL follows no link that another user has put there.
  unlink(temporary.c_str());
  base::Descriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.valid()) return failure("create", temporary);
  // The umask does not apply.
  const bool written = write_all(file.get(), text) && fchmod(file.get(), 0644) == 0;
  if (written && rename(temporary.c_str(), path_.c_str()) == 0) return base::success();
  const Error error = failure(written ? "replace" : "write", path_);
  unlink(temporary.c_str());
  return error;
}

}  // namespace unisono::daemon

// SPDX-License-Identifier: BSD-3-Clause
// unisonod: loads the NIC program on interfaces of its network namespace, and hands its groups to
// the processes of that host. Everything it has belongs to its descriptors, so it leaves nothing
// behind, however it ends. Ends on SIGTERM, SIGINT, and SIGHUP unless it is ignored.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/settings/settings.hpp"
#include "base/text.hpp"
#include "daemon/server.hpp"
#include "nic/loader/device.hpp"
#include "nic/loader/interface.hpp"
#include "nic/service/client.hpp"

namespace unisono::daemon {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kMostInterfaces = 16;  // their names fit in a message (nic::kLongestText)
// The smallest group takes about as much.
constexpr std::int64_t kLeastMemory = 16 << 10;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 40;

struct Options {
  ServerOptions server;
  std::string mode = "auto";
  int metrics_seconds = 15;
  int drain_seconds = 0;
};

// `unisono nic status` reads it.
std::string version_text() {
  return fmt::format("unisonod " UNISONO_VERSION "\nNIC program: {}",
                     nic::has_program() ? "built in" : "not built");
}

nic::Mode mode_of(const std::string& name) {
  if (name == "native") return nic::Mode::native;
  return name == "generic" ? nic::Mode::generic : nic::Mode::automatic;
}

// A check for CLI11, which takes the next word as an option's value, also if that is an option.
// Empty, or what is wrong.
std::string is_no_option(const std::string& word) {
  return word.starts_with("-") ? fmt::format("'{}' is no name of an interface", word) : "";
}

std::optional<std::int64_t> bytes_of(std::string word) {
  try {
    CLI::AsSizeValue(false)(word);  // makes it a number of bytes
    return base::parse_integer(word);
  } catch (const CLI::ValidationError&) {
    return std::nullopt;
  }
}

// A check for CLI11, too; the word becomes a number of bytes. CLI11 alone reads "-5" as a number
// without sign.
std::string read_memory(std::string& word) {
  const auto bytes = word.starts_with("-") ? std::nullopt : bytes_of(word);
  if (!bytes || *bytes < kLeastMemory || *bytes > kMostMemory) {
    return fmt::format("'{}' is no size from {} to {} (e.g. 64M, 1G)", word,
                       base::format_size(kLeastMemory), base::format_size(kMostMemory));
  }
  word = std::to_string(*bytes);
  return {};
}

void declare(CLI::App& app, Options& options) {
  ServerOptions& server = options.server;
  server.path = nic::kServicePath;
  server.port = nic::kServicePort;
  app.set_version_flag("--version", version_text(), "Print the version and exit");
  app.add_option("--interface", server.interfaces,
                 "Interface on which the program runs; once for each of several")
      ->required()
      ->allow_extra_args(false)
      ->check(is_no_option, "");
  app.add_option("--socket", server.path, "Where processes of this host find it")
      ->capture_default_str();
  app.add_option("--mode", options.mode, "auto, native (in the driver) or generic")
      ->option_text("auto|native|generic")
      ->check(CLI::IsMember({"auto", "native", "generic"}));
  app.add_option("--port", server.port, "UDP port that packets of the NIC path have")
      ->check(CLI::Range(1024, 65535))
      ->capture_default_str();
  app.add_option("--groups-per-user", server.quota.groups, "Most groups of one user")
      ->check(CLI::Range(1, UNISONO_NIC_ROWS_MAX))
      ->capture_default_str();
  app.add_option("--memory-per-user", server.quota.bytes, "Most memory of one user's groups")
      ->transform(CLI::Validator(read_memory, "SIZE"))
      ->capture_default_str();
  app.add_option("--connections-per-user", server.quota.connections, "Most connections of one user")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--descriptors-per-user", server.quota.descriptors,
                 "Most file descriptors of one user's groups")
      ->check(CLI::Range(3, 1 << 20))
      ->capture_default_str();
  app.add_option("--joins-per-second", server.quota.joins_per_second,
                 "Groups that one user may join in a second, after a burst of --groups-per-user")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--memory", server.capacity.bytes, "Most memory of all users' groups")
      ->transform(CLI::Validator(read_memory, "SIZE"))
      ->capture_default_str();
  app.add_option("--metrics", server.metrics,
                 "File for counters in Prometheus's text format; its name should end in .prom");
  app.add_option("--metrics-interval", options.metrics_seconds,
                 "Seconds between two writes of that file")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--drain", options.drain_seconds,
                 "Seconds for running groups to end when it is told to stop; it takes no new ones "
                 "meanwhile")
      ->check(CLI::Range(0, 7 * 86400))
      ->capture_default_str();
  app.footer(
      "It needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and Linux 6.6 or newer.\n"
      "Example:\n  unisonod --interface eth0");
}

// The folder of the default socket is made, as /run is emptied at each start of the system. Another
// one has to exist: its name may be a misprint.
base::Status check_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return base::success();
  const std::string folder = path.substr(0, slash);
  if (path == nic::kServicePath) mkdir(folder.c_str(), 0755);
  struct stat found = {};
  if (stat(folder.c_str(), &found) != 0) {
    return base::Error{base::Code::argument,
                       fmt::format("--socket {}: the folder {}: {}; make it first, or give another "
                                   "--socket",
                                   path, folder, std::strerror(errno))};
  }
  if (S_ISDIR(found.st_mode)) return base::success();
  return base::Error{
      base::Code::argument,
      fmt::format("--socket {}: {} is no folder; give another --socket", path, folder)};
}

// Raises the limit as far as allowed, because connections and groups need descriptors. Returns the
// new limit.
std::uint64_t raise_descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// From here on these signals can be read.
base::Descriptor end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // One that is blocked would come although nohup ignores it.
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return base::Descriptor(signalfd(-1, &set, SFD_CLOEXEC));
}

// Tells systemd, if it started this process, that clients may connect (Type=notify).
void tell_manager() {
  const base::Environment environment = base::process_environment();
  const auto found = environment.find("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (found == environment.end() || found->second.size() >= sizeof address.sun_path) return;
  const std::string& path = found->second;
  path.copy(address.sun_path, path.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (path.starts_with('@')) address.sun_path[0] = '\0';  // an abstract socket
  const base::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReady = "READY=1";
  sendto(socket.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), bytes);
}

// "eth0 (native mode)"
std::string mode_text(const nic::Device& device, const nic::Interface& interface) {
  const char* mode = "generic mode";
  if (device.native()) {
    mode = interface.driver != "veth"
               ? "native mode"
               : "native mode; the other end of a veth needs an XDP program in native mode, too";
  }
  return fmt::format("{} ({})", interface.name, mode);
}

// The programs on all interfaces.
struct Loaded {
  std::vector<std::unique_ptr<nic::Device>> devices;
  std::vector<std::string> modes;  // for people

  base::Status add(const std::string& name, nic::Mode mode) {
    UNISONO_ASSIGN(const nic::Interface interface, nic::read_interface(name));
    nic::DeviceOptions options;
    options.interface = name;
    options.mode = mode;
    UNISONO_ASSIGN(auto device, nic::load_device(options));
    modes.push_back(mode_text(*device, interface));
    devices.push_back(std::move(device));
    return base::success();
  }
  Devices all() const {
    std::vector<nic::Device*> all;
    for (const auto& device : devices) all.push_back(device.get());
    return Devices(std::move(all));
  }
};

base::Status check_different(std::vector<std::string> interfaces) {
  std::ranges::sort(interfaces);
  const auto twice = std::ranges::adjacent_find(interfaces);
  if (twice == interfaces.end()) return base::success();
  return base::Error{base::Code::argument, fmt::format("--interface {} is given twice", *twice)};
}

base::Status serve(const Options& options) {
  signal(SIGPIPE, SIG_IGN);  // a log without a reader does not end the daemon
  const base::Descriptor stop = end_signals();
  UNISONO_TRY(check_different(options.server.interfaces));
  UNISONO_TRY(check_folder(options.server.path));
  Loaded loaded;
  for (const std::string& interface : options.server.interfaces) {
    UNISONO_TRY(loaded.add(interface, mode_of(options.mode)));
  }
  ServerOptions wanted = options.server;
  wanted.metrics_interval_ns = options.metrics_seconds * base::kSecond;
  wanted.drain_ns = options.drain_seconds * base::kSecond;
  wanted.capacity =
      Capacity::of_descriptors(raise_descriptor_limit(), options.server.capacity.bytes);
  UNISONO_ASSIGN(const std::unique_ptr<Server> server, Server::open(loaded.all(), wanted));
  std::fputs(
      fmt::format("unisonod: serves {} at {}\n", fmt::join(loaded.modes, ", "), options.server.path)
          .c_str(),
      stderr);
  tell_manager();
  return server->run(stop.get());
}

// CLI11 reports a required option that is missing first, which would hide a misprint of its name.
std::string wrong_word(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  if (left.empty()) return {};
  const std::string& word = left.front();
  if (!word.starts_with("-")) {
    return fmt::format(
        "'{}' stands alone: unisonod takes options only, as in unisonod --interface "
        "eth0",
        word);
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view near = base::nearest_name(word, known);
  return fmt::format("no option is named '{}'{}", word,
                     near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

}  // namespace
}  // namespace unisono::daemon

int main(int argc, char** argv) {
  using namespace unisono;
  CLI::App app("unisonod: runs Unisono's collectives in the path of a network interface.",
               "unisonod");
  daemon::Options options;
  daemon::declare(app, options);
  try {
    app.parse(argc, argv);
    const auto given = static_cast<int>(options.server.interfaces.size());
    if (given > daemon::kMostInterfaces) {
      throw CLI::ArgumentMismatch::AtMost("--interface", daemon::kMostInterfaces,
                                          static_cast<std::size_t>(given));
    }
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::string message = daemon::wrong_word(app);
    if (message.empty()) message = error.what();
    std::fprintf(stderr, "unisonod: %s (see 'unisonod --help')\n", message.c_str());
    return daemon::kExitUsage;
  }
  const auto& settings = base::process_settings();  // sets the log level
  if (settings.ok()) base::log_warnings(*settings);
  const base::Status served =
      settings.ok() ? daemon::serve(options) : base::Status(settings.error());
  if (served.ok()) return 0;
  const std::string& message = served.error().message;
  std::fprintf(stderr, "%s%s\n",
               message.starts_with("unisonod:") ? "" : "unisonod: ", message.c_str());
  return daemon::kExitFailure;
}

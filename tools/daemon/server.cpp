// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "daemon/row_check.hpp"
#include "nic/loader/interface.hpp"

namespace unisono::daemon {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using nic::Message;
using nic::Refused;

constexpr int kWaitingConnections = 64;
// The pause after an operation failed for lack of a resource that others may release.
constexpr std::int64_t kPauseNs = base::kSecond / 10;

// For poll(); rounded up, so that the time has come afterwards.
int milliseconds_until(std::int64_t time_ns, std::int64_t now_ns) {
  if (time_ns == kNever) return -1;
  const std::int64_t left = std::max<std::int64_t>(time_ns - now_ns, 0);
  return static_cast<int>(
      std::min((left + base::kMillisecond - 1) / base::kMillisecond, std::int64_t{60'000}));
}

Error system_error(const std::string& what) {
  return {Code::system, fmt::format("unisonod: {}: {}", what, std::strerror(errno))};
}

base::Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{Code::argument, fmt::format("unisonod: a socket's path has 1 to {} bytes, not {}",
                                             sizeof address.sun_path - 1, path.size())};
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// A socket that a killed daemon left is taken away; a daemon that lives is not.
base::Status clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat what = {};
  if (lstat(path.c_str(), &what) != 0) return base::success();
  if (!S_ISSOCK(what.st_mode)) {
    return Error{Code::argument, fmt::format("unisonod: {} is there and is no socket", path)};
  }
  const Descriptor trial(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(trial.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return Error{Code::state, fmt::format("unisonod: another one serves at {}", path)};
  }
  if (errno != ECONNREFUSED) return system_error(fmt::format("look who serves at {}", path));
  if (unlink(path.c_str()) != 0) return system_error(fmt::format("remove the old {}", path));
  return base::success();
}

base::Result<Client> client_of(int connection) {
  ucred credentials = {};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    return system_error("ask who connected");
  }
  return Client{connection, credentials.uid, static_cast<std::uint32_t>(credentials.pid)};
}

// False if the client does not read its answers, or is gone.
bool send_message(int connection, const Message& message, const nic::GroupMaps& maps = {}) {
  std::vector<std::byte> bytes = nic::encode(message);
  iovec part = {bytes.data(), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  std::vector<int> descriptors = {maps.slots, maps.blocks};
  descriptors.insert(descriptors.end(), maps.wakes.begin(), maps.wakes.end());
  constexpr std::size_t kMost = (2 + UNISONO_NIC_WAITERS_MAX) * sizeof(int);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMost)> control = {};
  if (maps.slots >= 0) {
    const std::size_t rights_bytes = descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(rights_bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(rights_bytes);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), rights_bytes);
  }
  return sendmsg(connection, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Message refusal(const Error& error) { return Refused{error.code, error.message}; }

}  // namespace

Server::Server(Devices devices, ServerOptions options, Descriptor listener)
    : devices_(std::move(devices)),
      options_(std::move(options)),
      listener_(std::move(listener)),
      groups_(devices_, options_.quota, options_.capacity),
      turns_(options_.quota.groups, options_.quota.joins_per_second) {
  for (std::size_t i = 0; i < devices_.count(); ++i) tracers_.emplace_back(devices_.at(i));
}

base::Result<std::unique_ptr<Server>> Server::open(Devices devices, ServerOptions options) {
  UNISONO_ASSIGN(const sockaddr_un address, address_of(options.path));
  UNISONO_TRY(clear_path(options.path, address));
  Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return system_error("open a socket");
  // All users may connect; the quota protects the daemon. (The umask does not apply.)
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(options.path.c_str(), 0666) != 0 || listen(listener.get(), kWaitingConnections) != 0) {
    return system_error(fmt::format("serve at {}", options.path));
  }
  std::unique_ptr<Server> server(
      new Server(std::move(devices), std::move(options), std::move(listener)));
  server->metrics_ns_ = base::now_ns() + server->options_.metrics_interval_ns;
  const base::Status written = server->write_metrics(true);
  server->metrics_failed_ = !written.ok();
  UNISONO_TRY(written);
  return server;
}

Server::~Server() {
  unlink(options_.path.c_str());
  for (const auto& [descriptor, connection] : connections_) {
    send_message(descriptor,
                 Refused{Code::cancelled, "unisonod was stopped; operations in the NIC path end"});
    groups_.drop(connection.client);
  }
  connections_.clear();
  const base::Status written = write_metrics(false);
  if (written.ok() || metrics_failed_) return;
  base::log(base::LogLevel::warn, "unisonod", "{}", written.error().message);
}

base::Status Server::run(int stop) {
  while (true) {
    const std::int64_t now_ns = base::now_ns();
    if (is_drained(now_ns)) return base::success();
    std::int64_t next_ns = std::min(time_of_chores(now_ns), drains_until_ns_);
    const bool accepts = now_ns >= accepts_from_ns_;
    if (!accepts) next_ns = std::min(next_ns, accepts_from_ns_);
    // poll() ignores negative descriptors.
    std::vector<pollfd> sources = {{stop, POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
    const std::size_t first_tracer = sources.size();
    for (const Tracer& tracer : tracers_) sources.push_back({tracer.descriptor(), POLLIN, 0});
    const std::size_t first = sources.size();
    for (const auto& [descriptor, connection] : connections_) {
      const std::int64_t wait_ns = turns_.wait_ns(connection.client.user, now_ns);
      if (wait_ns != 0) next_ns = std::min(next_ns, now_ns + wait_ns);
      // A hang-up is reported in any case.
      const short events = wait_ns == 0 ? POLLIN : 0;
      sources.push_back({descriptor, events, 0});
    }
    if (poll(sources.data(), sources.size(), milliseconds_until(next_ns, now_ns)) < 0) {
      if (errno == EINTR) continue;
      return system_error("wait for clients");
    }
    if (sources[0].revents != 0 && !begins_to_drain(stop)) return base::success();
    // First, as a connection that ends takes the trace with it.
    for (std::size_t i = 0; i < tracers_.size(); ++i) {
      if (sources[first_tracer + i].revents == 0 || tracers_[i].hand_out()) continue;
      // Its listener is gone, which is noticed as the end of the connection.
      tracers_[i].stop(tracers_[i].connection());
    }
    std::vector<int> ready;
    for (std::size_t i = first; i < sources.size(); ++i) {
      if (sources[i].revents != 0) ready.push_back(sources[i].fd);
    }
    if (!ready.empty()) serve_next(ready);
    if (sources[1].revents != 0) accept_one();
  }
}

// False: it stops at once.
bool Server::begins_to_drain(int stop) {
  std::array<std::byte, sizeof(signalfd_siginfo)> signal;
  const bool was_told_before = drains_until_ns_ != kNever;
  if (options_.drain_ns == 0 || was_told_before) return false;
  if (read(stop, signal.data(), signal.size()) <= 0) return false;
  drains_until_ns_ = base::now_ns() + options_.drain_ns;
  if (groups_.count() > 0) {
    base::log(base::LogLevel::warn, "unisonod",
              "stops when its groups ({}) have ended, after {} at the latest (--drain); a second "
              "signal stops it at once",
              groups_.count(), base::format_time_ns(options_.drain_ns));
  }
  return true;
}

bool Server::is_drained(std::int64_t now_ns) const {
  return drains_until_ns_ != kNever && (groups_.count() == 0 || now_ns >= drains_until_ns_);
}

// Does the periodic work, and returns when the next of it is due.
std::int64_t Server::time_of_chores(std::int64_t now_ns) {
  return std::min(time_of_removals(now_ns), time_of_metrics(now_ns));
}

std::int64_t Server::time_of_removals(std::int64_t now_ns) {
  if (!groups_.has_leaving()) {
    try_again_ns_ = 0;
    return kNever;
  }
  if (try_again_ns_ != 0 && now_ns >= try_again_ns_) groups_.try_again();
  if (try_again_ns_ == 0 || now_ns >= try_again_ns_) try_again_ns_ = now_ns + kPauseNs;
  return try_again_ns_;
}

// A full disk must not end the service, so a failure is a note, and the next write is due as usual.
std::int64_t Server::time_of_metrics(std::int64_t now_ns) {
  if (options_.metrics.empty()) return kNever;
  if (now_ns < metrics_ns_) return metrics_ns_;
  metrics_ns_ = now_ns + options_.metrics_interval_ns;
  const base::Status written = write_metrics(true);
  if (!written.ok() && !metrics_failed_) {
    base::log(base::LogLevel::warn, "unisonod", "{}; it is tried again", written.error().message);
  }
  metrics_failed_ = !written.ok();
  return metrics_ns_;
}

base::Status Server::write_metrics(bool up) {
  if (options_.metrics.empty()) return base::success();
  groups_.refresh();
  MetricsSample sample;
  for (std::size_t i = 0; i < devices_.count(); ++i) {
    UNISONO_ASSIGN(const nic::Counters counters, devices_.at(i).counters());
    sample.interfaces.push_back({options_.interfaces[i], devices_.at(i).native(), counters});
  }
  sample.up = up;
  sample.service = service_counters();
  sample.connections = static_cast<std::uint32_t>(connections_.size());
  sample.groups = groups_.count();
  sample.bytes = groups_.bytes();
  sample.retained_bytes = groups_.retained_bytes();
  return MetricsFile(options_.metrics).write(metrics_text(sample));
}

// Serves a connection that has sent something: that of the user who has had the least time. The
// connections of one user take turns.
void Server::serve_next(const std::vector<int>& ready) {
  const auto turn_of = [this](int descriptor) {
    const Connection& connection = connections_.at(descriptor);
    return std::pair(turns_.start_of(connection.client.user), connection.served);
  };
  const int next = *std::ranges::min_element(ready, {}, turn_of);
  Connection& connection = connections_.at(next);
  const std::uint32_t user = connection.client.user;
  connection.served = ++messages_;
  const std::int64_t from_ns = base::now_ns();
  bool keep = true;
  serve(connection, keep);
  if (!keep) drop(next);
  const std::int64_t now_ns = base::now_ns();
  turns_.charge(user, now_ns - from_ns);
  turns_.tidy(now_ns);
}

void Server::accept_one() {
  Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    // The connection stays, and so the listener would be ready again at once.
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (!is_short) return;
    base::log(base::LogLevel::debug, "unisonod", "accept a connection: {}", std::strerror(errno));
    accepts_from_ns_ = base::now_ns() + kPauseNs;
    return;
  }
  const auto client = client_of(socket.get());
  if (!client.ok()) return;
  if (const auto refused = too_many_connections(client->user)) {
    ++counted_.connections_refused;
    send_message(socket.get(), *refused);
    return;
  }
  base::log(base::LogLevel::debug, "unisonod", "process {} of user {} connected", client->process,
            client->user);
  ++counted_.connections_accepted;
  const int descriptor = socket.get();
  connections_[descriptor] = {std::move(socket), *client};
}

std::optional<Refused> Server::too_many_connections(std::uint32_t user) const {
  const auto own = static_cast<std::uint32_t>(std::ranges::count_if(
      connections_, [user](const auto& other) { return other.second.client.user == user; }));
  if (own >= options_.quota.connections) {
    return Refused{Code::resources,
                   fmt::format("unisonod: user {} has {} connections, which is all that one user "
                               "may have; start unisonod with a larger --connections-per-user",
                               user, options_.quota.connections)};
  }
  const std::uint32_t total = options_.capacity.connections;
  if (has_room(connections_.size(), 1, total, own)) return std::nullopt;
  return Refused{
      Code::resources,
      fmt::format("unisonod: all users together have {} of {} connections, of which {} are kept "
                  "for users with fewer than {}. Raise its limit of file descriptors (ulimit -n, "
                  "LimitNOFILE= of the unit)",
                  connections_.size(), total, reserve_of(total), kLittle)};
}

void Server::drop(int connection) {
  for (Tracer& tracer : tracers_) tracer.stop(connection);
  const auto found = connections_.find(connection);
  groups_.drop(found->second.client);
  base::log(base::LogLevel::debug, "unisonod", "process {} of user {} has gone",
            found->second.client.process, found->second.client.user);
  connections_.erase(found);
}

void Server::serve(Connection& connection, bool& keep) {
  std::array<std::byte, nic::kLongestMessage> bytes;
  const ssize_t length = recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  keep = false;
  if (length <= 0) return;
  ++counted_.requests;
  const auto question = nic::decode(std::span(bytes).first(static_cast<std::size_t>(length)));
  if (!question.ok()) {
    ++counted_.malformed;
    if (const auto left_out = complaints_.admit(connection.client.user, base::now_ns())) {
      const std::string more =
          *left_out == 0 ? "" : fmt::format(" (and {} more that were not written)", *left_out);
      base::log(base::LogLevel::warn, "unisonod", "process {} of user {} sent {}{}",
                connection.client.process, connection.client.user, question.error().message, more);
    }
    send_message(connection.socket.get(), refusal(question.error()));
    return;
  }
  const Reply reply = answer(connection.client, *question);
  if (std::holds_alternative<Refused>(reply.message)) ++counted_.requests_refused;
  keep = send_message(connection.socket.get(), reply.message, reply.maps);
}

Server::Reply Server::answer(Client& client, const Message& question) {
  groups_.refresh();
  // A client that names an interface wants to see it. One that names none is about to join a group.
  const auto* const describe = std::get_if<nic::Describe>(&question);
  const bool begins_group = std::holds_alternative<nic::Join>(question) ||
                            (describe != nullptr && describe->interface.empty());
  if (begins_group && drains_until_ns_ != kNever) {
    return {
        Refused{Code::state, "unisonod: it is about to stop, and takes no new groups (--drain)"},
        {}};
  }
  if (const auto* join = std::get_if<nic::Join>(&question)) return answer_join(client, join->row);
  if (const auto* share = std::get_if<nic::Share>(&question)) {
    return hand_out_group(groups_.share(client, *share));
  }
  if (const auto* leave = std::get_if<nic::Leave>(&question)) {
    const base::Status left = groups_.leave(client, leave->index);
    return {left.ok() ? Message(nic::Left{}) : refusal(left.error()), {}};
  }
  if (std::holds_alternative<nic::AskStatus>(question)) return {answer_status(client), {}};
  if (describe != nullptr) {
    const auto described = choose(client, describe->interface);
    return {described.ok() ? Message(*described) : refusal(described.error()), {}};
  }
  if (const auto* trace = std::get_if<nic::Trace>(&question)) {
    return {answer_trace(client, *trace), {}};
  }
  return {Refused{Code::argument, "unisonod: an answer is no question"}, {}};
}

Server::Reply Server::answer_join(const Client& client, const unisono_nic_row& row) {
  turns_.count_join(client.user, base::now_ns());
  const auto describes = served(client);
  if (!describes.ok()) return {refusal(describes.error()), {}};
  const auto checked = checked_row(row, *describes);
  if (!checked.ok()) return {refusal(checked.error()), {}};
  const auto joined = groups_.join(client, *checked);
  if (joined.ok()) ++counted_.groups_joined;
  return hand_out_group(joined);
}

Server::Reply Server::hand_out_group(const base::Result<std::uint32_t>& number) const {
  if (!number.ok()) return {refusal(number.error()), {}};
  const unisono_nic_row& placed = groups_.row(*number);
  return {nic::Joined{*number, placed.interface, placed.own}, groups_.maps(*number)};
}

Message Server::answer_trace(const Client& client, const nic::Trace& question) {
  const base::Status started = tracers_[client.interface].start(client.connection, question.every);
  if (!started.ok()) return refusal(started.error());
  base::log(base::LogLevel::info, "unisonod", "process {} of user {} traces", client.process,
            client.user);
  return nic::Tracing{};
}

Message Server::answer_status(const Client& client) const {
  nic::ServiceStatus status;
  const auto described = served(client);
  const auto counters = devices_.at(client.interface).counters();
  if (!described.ok()) return refusal(described.error());
  if (!counters.ok()) return refusal(counters.error());
  status.served = *described;
  status.counters = *counters;
  status.process = static_cast<std::uint32_t>(getpid());
  status.connections = static_cast<std::uint32_t>(connections_.size());
  status.groups = groups_.count();
  status.bytes = groups_.bytes();
  status.retained_bytes = groups_.retained_bytes();
  status.service = service_counters();
  status.own_groups = groups_.lines_for(client.user);
  return status;
}

nic::ServiceCounters Server::service_counters() const {
  nic::ServiceCounters counters = counted_;
  counters.groups_ended = counters.groups_joined - groups_.count();
  return counters;
}

// The client's interface from then on. Without a name that is the first one that can be used; if
// none can, the error is the first one's.
base::Result<nic::Served> Server::choose(Client& client, const std::string& interface) const {
  const std::vector<std::string>& all = options_.interfaces;
  if (!interface.empty()) {
    const auto found = std::ranges::find(all, interface);
    if (found == all.end()) {
      return Error{Code::argument, fmt::format("unisonod: it does not serve {}, but {}", interface,
                                               fmt::join(all, ", "))};
    }
    client.interface = static_cast<std::size_t>(found - all.begin());
    return served(client);
  }
  client.interface = 0;
  const auto first = served(client);
  if (first.ok()) return first;
  for (std::size_t i = 1; i < all.size(); ++i) {
    client.interface = i;
    const auto other = served(client);
    if (other.ok()) return other;
  }
  client.interface = 0;
  return first;
}

// The address is read each time: it may have changed.
base::Result<nic::Served> Server::served(const Client& client) const {
  UNISONO_ASSIGN(const nic::Interface interface,
                 nic::read_interface(options_.interfaces[client.interface]));
  nic::Served served;
  served.interface = interface.name;
  served.all = fmt::format("{}", fmt::join(options_.interfaces, " "));
  served.driver = interface.driver;
  served.native = devices_.at(client.interface).native() ? 1 : 0;
  std::copy(std::begin(interface.mac), std::end(interface.mac), std::begin(served.own.mac));
  served.own.ipv4 = interface.ipv4;
  served.own.port = htons(options_.port);
  served.mask = interface.mask;
  served.groups_left = groups_.groups_left(client.user);
  served.bytes_left = groups_.bytes_left(client.user);
  std::string problem = !interface.up         ? "is down"
                        : interface.ipv4 == 0 ? "has no IPv4 address"
                        : !interface.ethernet ? "is no Ethernet interface"
                                              : "";
  if (problem.empty() && interface.mtu < nic::kLeastMtu) {
    problem = fmt::format("carries {} bytes (its MTU), and packets of the NIC path have up to {}",
                          interface.mtu, nic::kLeastMtu);
  }
  if (problem.empty()) return served;
  return Error{Code::unsupported,
               fmt::format("unisonod: interface {} {}", interface.name, problem)};
}

}  // namespace unisono::daemon

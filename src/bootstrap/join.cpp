// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/join.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "bootstrap/rendezvous/alike_settings.hpp"
#include "bootstrap/rendezvous/rendezvous_client.hpp"
#include "bootstrap/rendezvous/welcome.hpp"
#include "bootstrap/serving_rank.hpp"
#include "bootstrap/socket.hpp"
#include "memory/memory_file.hpp"
#include "transport/table.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;
using base::Setting;
using base::Status;
using transport::JobDatagrams;

// 0: there are none.
std::uint64_t hash_of_warnings(const base::Settings& settings) {
  std::string all;
  for (const std::string& warning : settings.warnings()) all += warning + '\n';
  return all.empty() ? 0 : wire::hash(wire::Key{}, all);
}

// One rank's way from a job's description to its JobInfo.
class Joining {
 public:
  Joining(const JobDescription& job, const base::Settings& settings, base::Descriptor listener)
      : job_(job),
        settings_(settings),
        listener_(std::move(listener)),
        timeout_ns_(settings.time_ns(Setting::start_timeout)),
        memory_bytes_(static_cast<std::uint64_t>(settings.bytes(Setting::shared_limit))) {}

  Result<JobInfo> alone() const;
  Result<JobInfo> with_others();

 private:
  Result<std::unique_ptr<JobDatagrams>> open_datagrams() const;
  JoinRequest join_request() const;
  Status resolve_address();
  Result<Joined> meet_others();
  void prepare_datagrams();
  Result<Joined> run_rendezvous();
  Error with_datagrams_error(Error error) const;
  Result<JobInfo> job_info_of(Joined joined);
  Result<JobInfo> place_of(Joined& joined);
  Status connect_datagrams(const Welcome& welcome, JobInfo& info);
  Status join_group(JobInfo& info);

  const JobDescription& job_;
  Address address_;  // the job's, resolved
  const base::Settings& settings_;
  base::Descriptor listener_;  // at the job's address, until rank 0 serves there
  std::int64_t timeout_ns_;
  std::uint64_t memory_bytes_;
  std::unique_ptr<JobDatagrams> datagrams_;  // used only if there are several hosts
  std::string datagrams_error_;              // why there are none
};

Result<JobInfo> Joining::alone() const {
  JobInfo info;
  info.rank = job_.rank;
  info.ranks = job_.ranks;
  info.job = fmt::format("unisono-{}-pid-{}", geteuid(), getpid());
  info.memory_bytes = memory_bytes_;
  info.members.push_back(RankLocation{.pid = getpid()});
  UNISONO_ASSIGN(info.memory, memory::create_memory(memory_bytes_));
  return info;
}

// Bound to the local address of the route to the rendezvous, since the same network leads to the
// other hosts. On the rendezvous' own host that is its address.
Result<std::unique_ptr<JobDatagrams>> Joining::open_datagrams() const {
  UNISONO_ASSIGN(const transport::IpAddress rendezvous, ip_of(address_));
  return transport::datagrams_rows().front().open(settings_, job_.rank, rendezvous);
}

JoinRequest Joining::join_request() const {
  JoinRequest request;
  request.rank = job_.rank;
  request.ranks = job_.ranks;
  request.server = job_.address_given ? "the launcher or rank 0" : "rank 0";
  request.address = address_;
  request.address_given = job_.address_given;
  request.key = job_.key;
  request.timeout_ns = timeout_ns_;
  request.memory_bytes = memory_bytes_;
  request.memory_layout = job_.memory_layout;
  request.settings = settings_text(settings_);
  request.warnings = hash_of_warnings(settings_);
  request.failure = job_.failure;
  if (datagrams_ != nullptr) {
    request.endpoint = datagrams_->endpoint();
    request.max_payload = static_cast<std::uint32_t>(datagrams_->limits().max_payload);
  }
  return request;
}

Result<Joined> Joining::run_rendezvous() {
  const JoinRequest request = join_request();
  if (job_.rank != 0) return join_rendezvous(request);
  // At a given address a launcher may listen already.
  return job_.address_given ? join_or_serve(request)
                            : serve_and_join(request, std::move(listener_));
}

// Errors of other ranks may have their cause here.
Error Joining::with_datagrams_error(Error error) const {
  if (!datagrams_error_.empty() && datagrams_error_ != error.message) {
    error.message +=
        fmt::format("; rank {} has no address for datagrams: {}", job_.rank, datagrams_error_);
  }
  return error;
}

Status Joining::resolve_address() {
  address_ = job_.address;
  const Status resolved = resolve(address_, timeout_ns_);
  if (resolved.ok()) return resolved;
  return Error{resolved.error().code,
               fmt::format("rank {} of {}: {}", job_.rank, job_.ranks, resolved.error().message)};
}

// An exception is told as any error of this rank. Those after the rank's Hello do not come here.
Result<Joined> Joining::meet_others() {
  try {
    UNISONO_TRY(resolve_address());
    prepare_datagrams();
    return run_rendezvous();
  } catch (const std::exception& thrown) {
    const Error error = base::error_of(thrown);
    if (resolve_address().ok())
      tell_others(join_request(), error);  // it may have been thrown there
    return error;
  }
}

void Joining::prepare_datagrams() {
  const bool may_need = job_.address.kind == Address::Kind::tcp && job_.ranks > 1;
  if (!may_need || job_.failure.code != Code::ok) return;
  Result<std::unique_ptr<JobDatagrams>> opened = open_datagrams();
  // Not yet an error: no datagrams are needed if all ranks turn out to be on one host.
  if (opened.ok()) {
    datagrams_ = std::move(*opened);
  } else {
    datagrams_error_ = opened.error().message;
  }
}

Result<JobInfo> Joining::with_others() {
  Result<Joined> joined = meet_others();
  if (!joined.ok()) return with_datagrams_error(joined.error());
  return job_info_of(std::move(*joined));
}

// The others have their places already, and wait for this rank where it fails.
Result<JobInfo> Joining::job_info_of(Joined joined) {
  const std::unique_ptr<StartConnections>& connections = joined.connections;
  const auto place = [&]() -> Result<JobInfo> {
    try {
      return place_of(joined);
    } catch (const std::exception& thrown) {
      return base::error_of(thrown);
    }
  };
  Result<JobInfo> info = place();
  if (info.ok()) {
    info->connections = std::move(joined.connections);
  } else {
    connections->tell(info.error());
  }
  return info;
}

Result<JobInfo> Joining::place_of(Joined& joined) {
  const Welcome& welcome = joined.welcome;
  JobInfo info;
  info.rank = job_.rank;
  info.ranks = job_.ranks;
  info.job = welcome.job;
  info.differing_settings = welcome.differing_settings;
  info.repeats_warnings = welcome.warnings == hash_of_warnings(settings_);
  info.memory_bytes = welcome.memory_bytes;
  info.key = packet_key(wire::key_of(job_.key), welcome.job_id);
  info.memory = std::move(joined.memory);
  const WelcomeMember& own = welcome.members[static_cast<std::size_t>(job_.rank)];
  const std::uint32_t own_host = own.host;
  info.address = own.endpoint.address;
  info.shared_cores = static_cast<int>(welcome.shared_cores);
  std::vector<int> hosts;
  for (const WelcomeMember& each : welcome.members) {
    RankLocation member{.pid = static_cast<pid_t>(each.pid)};
    if (welcome.hosts > 1) member.address = each.endpoint.address;
    info.members.push_back(member);
    hosts.push_back(static_cast<int>(each.host));
  }
  info.hosts = topology::HostMap::of_labels(hosts);
  base::log(base::LogLevel::info, "bootstrap", "job {}: host {} of {}", info.job, own_host,
            info.hosts.hosts());
  if (welcome.hosts > 1) UNISONO_TRY(connect_datagrams(welcome, info));
  return info;
}

Status Joining::connect_datagrams(const Welcome& welcome, JobInfo& info) {
  if (datagrams_ == nullptr) {
    return with_datagrams_error({Code::state, "the rendezvous has started a job of several hosts"});
  }
  std::vector<transport::Endpoint> endpoints;
  for (const WelcomeMember& each : welcome.members) endpoints.push_back(each.endpoint);
  UNISONO_TRY(datagrams_->meet(endpoints, welcome.max_payload));
  UNISONO_TRY(join_group(info));
  UNISONO_ASSIGN(info.datagrams, transport::decorate(std::move(datagrams_), settings_));
  return base::success();
}

// By one rank of each host: what it receives is in the host's memory, for all its ranks.
Status Joining::join_group(JobInfo& info) {
  constexpr int kLeastHosts = 3;  // a message to one other host needs no multicast
  if (info.hosts.hosts() < kLeastHosts) return base::success();
  info.multicast = settings_.toggle(Setting::multicast);
  if (info.hosts.place(info.rank) != 0) return base::success();
  return datagrams_->join_multicast(wire::job_of(info.key));
}

}  // namespace

Result<JobInfo> join(const JobDescription& job, const base::Settings& settings,
                     base::Descriptor listener) {
  Joining joining(job, settings, std::move(listener));
  return job.address.name.empty() ? joining.alone() : joining.with_others();
}

}  // namespace unisono::bootstrap

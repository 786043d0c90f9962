// SPDX-License-Identifier: BSD-3-Clause
// Entry points that begin and end a rank's part in a job.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>

#include "api/error.hpp"
#include "api/objects.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/exchange/exchange_rendezvous.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "bootstrap/launchers/launcher.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "comm/start.hpp"
#include "memory/memory_file.hpp"
#include "nic/service/probe.hpp"
#include "plan/call.hpp"
#include "profile/profile.hpp"
#include "select/override.hpp"
#include "transport/ip/network_settings.hpp"
#include "transport/table.hpp"

namespace unisono::api {
namespace {

using base::Code;
using base::Error;
using base::Result;

std::unique_ptr<network::Network> network_of(bootstrap::JobInfo& info,
                                             const memory::JobMemory& memory,
                                             const base::Settings& settings) {
  if (info.datagrams == nullptr) return nullptr;
  return network::Network::over(info, memory, job::SilenceLimits::of(settings).suspect_ns);
}

// For an error after the rendezvous, where the others wait for this rank.
Error tell(const bootstrap::JobInfo& info, const Error& error) {
  if (info.connections != nullptr) info.connections->tell(error);
  return error;
}

// Maps the job's memory, in which the ranks of a host meet. Where that fails, the header is enough
// to tell the others, which wait for this rank.
Result<std::shared_ptr<memory::JobMemory>> map_memory(bootstrap::JobInfo& info,
                                                      const base::Settings& settings) try {
  auto memory = memory::JobMemory::map(std::move(info.memory), info.memory_bytes);
  if (memory) return memory;
  info.memory_bytes = memory::JobMemory::header_bytes();
  auto header = memory::JobMemory::map(std::move(info.memory), info.memory_bytes);
  if (!header) return tell(info, memory.error());
  auto network = network_of(info, **header, settings);
  const auto entered =
      job::Job::enter(info, std::move(*header), settings, transport::local_rows().front().make(),
                      std::move(network), std::nullopt, memory.error());
  return entered.error();
} catch (const std::exception& thrown) {
  return tell(info, base::error_of(thrown));
}

// Also the world's place among the rank's communicators: after the start nothing may fail.
Result<unisono_comm_t> reserve(Rank& rank) {
  unisono_comm_t handle = nullptr;
  try {
    UNISONO_ASSIGN(handle, reserve_comm(rank));
    rank.comms.insert(handle);
    return handle;
  } catch (const std::exception& thrown) {
    if (handle != nullptr) comms().remove(handle);
    return base::error_of(thrown);
  }
}

Result<comm::Started> start(bootstrap::JobInfo& info,
                            const std::shared_ptr<memory::JobMemory>& memory,
                            const base::Settings& settings,
                            const std::optional<nic::Capabilities>& nic) try {
  std::unique_ptr<network::Network> network = network_of(info, *memory, settings);
  return comm::start_rank(info, memory, settings, transport::local_rows().front().make(),
                          std::move(network), nic);
} catch (const std::exception& thrown) {
  // Before the rank could enter: later ones are told where they are found.
  const Error error = base::error_of(thrown);
  job::tell_before_start(*memory, info, error);
  return error;
}

Result<unisono_comm_t> enter(bootstrap::JobInfo info, std::shared_ptr<memory::JobMemory> memory,
                             const base::Settings& process_settings,
                             const std::optional<nic::Capabilities>& nic,
                             std::unique_ptr<Rank> rank = std::make_unique<Rank>()) {
  const base::Settings& settings = rank->settings ? *rank->settings : process_settings;
  base::set_check_rank(info.rank);
  base::set_log_rank(info.rank);
  const Result<unisono_comm_t> reserved = reserve(*rank);
  if (!reserved.ok()) {
    job::tell_before_start(*memory, info, reserved.error());
    return reserved.error();
  }
  const unisono_comm_t handle = *reserved;
  auto started = start(info, memory, settings, nic);
  if (!started) {
    rank->comms.erase(handle);
    comms().remove(handle);
    return started.error();
  }
  rank->job = std::move(started->job);
  rank->info = std::move(info);
  add_comm(handle, std::move(started->world));
  rank->world = handle;
  rank.release();  // owned by the world's handle until unisono_finalize
  return handle;
}

// Asked before the ranks of several hosts watch each other. A hanging daemon then delays this rank
// only, and no rank takes another for lost meanwhile.
nic::Capabilities find_nic(const base::Settings& settings, int rank) {
  if (settings.toggle(base::Setting::nic) == base::Toggle::off) return {};
  const auto networks = transport::network_settings(settings);
  if (!networks.ok()) return {};  // joining the job reports it
  const auto capabilities = nic::probe_capabilities(
      settings.text(base::Setting::nic_socket), nic::Preferences::of(settings),
      [&](const std::string& interface, std::uint32_t ipv4) {
        return networks->networks.allows(interface, transport::ipv4_address(ipv4));
      });
  if (capabilities.ok()) return *capabilities;
  base::log(base::LogLevel::info, "nic", "rank {} has no NIC path: {}", rank,
            capabilities.error().message);
  return {};
}

// Settings of type text are read where they are used. A rank with an invalid one finds it here,
// while the rendezvous can still tell the others.
Result<base::Settings> checked(const Result<base::Settings>& settings) {
  if (!settings) return settings;
  UNISONO_TRY(select::overrides_of(*settings));
  UNISONO_TRY(transport::network_settings(*settings));
  return settings;
}

// One rank of a host warns of unknown settings, and none if rank 0 does it with the same words.
bool warns_for_its_host(const bootstrap::JobInfo& info) {
  return !info.repeats_warnings && info.hosts.ranks() > 0 && info.hosts.place(info.rank) == 0;
}

Result<bootstrap::JobInfo> join_and_warn(bootstrap::JobDescription job,
                                         const base::Settings& settings) {
  if (job.rank == 0) base::log_warnings(settings);
  Result<bootstrap::JobInfo> info = bootstrap::join_job(std::move(job), settings);
  // If it has failed, an unknown setting may be the cause.
  if (!info || warns_for_its_host(*info)) base::log_warnings(settings);
  return info;
}

// A rank knows this before it joins its job.
struct BeforeJoin {
  bootstrap::JobDescription job;
  std::optional<nic::Capabilities> nic;
  std::unique_ptr<Rank> rank;
};

Result<BeforeJoin> prepare_join() {
  const auto& settings = base::process_settings();
  if (const auto usable = checked(settings); !usable) {
    bootstrap::tell_failure(usable.error());
    return usable.error();
  }
  BeforeJoin prepared;
  UNISONO_ASSIGN(prepared.job, bootstrap::describe_own_job(*settings));
  prepared.job.memory_layout = comm::memory_layout(*settings);
  if (bootstrap::may_span_hosts(prepared.job)) {
    prepared.nic = find_nic(*settings, prepared.job.rank);
  }
  prepared.rank = std::make_unique<Rank>();
  return prepared;
}

Result<BeforeJoin> prepare_join_or_tell() try {
  return prepare_join();
} catch (const std::exception& thrown) {
  const Error error = base::error_of(thrown);
  bootstrap::tell_failure(error);
  return error;
}

Result<unisono_comm_t> init_process() {
  UNISONO_ASSIGN(BeforeJoin prepared, prepare_join_or_tell());
  const auto& settings = base::process_settings();
  const std::optional<nic::Capabilities>& nic = prepared.nic;
  UNISONO_ASSIGN(bootstrap::JobInfo info, join_and_warn(std::move(prepared.job), *settings));
  UNISONO_ASSIGN(auto memory, map_memory(info, *settings));
  return enter(std::move(info), std::move(memory), *settings, nic, std::move(prepared.rank));
}

Result<unisono_threads_t> make_threads(int ranks) {
  const auto& settings = base::process_settings();
  if (!settings) return settings.error();
  base::log_warnings(*settings);
  const auto bytes = static_cast<std::uint64_t>(settings->bytes(base::Setting::shared_limit));
  UNISONO_ASSIGN(auto file, memory::create_memory(bytes));
  auto threads = std::make_unique<ThreadJob>();
  threads->ranks = ranks;
  threads->taken.resize(static_cast<std::size_t>(ranks));
  UNISONO_ASSIGN(threads->memory, memory::JobMemory::map(std::move(file), bytes));
  const unisono_threads_t handle = thread_jobs().insert(std::move(threads));
  if (handle == nullptr) {
    return Error{Code::resources, fmt::format("there are {} jobs of threads already; free those "
                                              "that have ended",
                                              ThreadJobTable::kMost)};
  }
  return handle;
}

Error bad_threads(const char* function, unisono_threads_t threads) {
  if (threads == nullptr) {
    return {Code::argument, fmt::format("{}: threads is NULL", function)};
  }
  return {Code::state, fmt::format("{}: the job of threads has ended (freed) or never was one, or "
                                   "this process is a child that has no part in it",
                                   function)};
}

Result<unisono_comm_t> init_thread(ThreadJob& threads, int rank) {
  {
    const std::lock_guard lock(threads.mutex);
    if (threads.taken[static_cast<std::size_t>(rank)]) {
      return Error{Code::state, fmt::format("rank {} is taken already", rank)};
    }
    threads.taken[static_cast<std::size_t>(rank)] = true;
  }
  bootstrap::JobInfo info;
  info.rank = rank;
  info.ranks = threads.ranks;
  info.job = fmt::format("threads of {}", getpid());
  info.members.assign(static_cast<std::size_t>(threads.ranks), bootstrap::RankLocation{getpid()});
  return enter(std::move(info), threads.memory, *base::process_settings(), std::nullopt);
}

// A rank's part of a job that it has joined and not yet entered.
struct Joined {
  bootstrap::JobInfo info;
  std::shared_ptr<memory::JobMemory> memory;
  std::optional<nic::Capabilities> nic;
};

Result<Joined> join_over(bootstrap::ExchangeRounds& rounds,
                         const Result<base::Settings>& settings) try {
  UNISONO_ASSIGN(bootstrap::ChosenRendezvous chosen,
                 bootstrap::choose_rendezvous_by_exchange(rounds, settings));
  bootstrap::JobDescription job;
  job.rank = rounds.rank();
  job.ranks = rounds.ranks();
  job.address = std::move(chosen.address);
  job.key = std::move(chosen.key);
  job.memory_layout = comm::memory_layout(*settings);
  Joined joined;
  if (bootstrap::may_span_hosts(job)) joined.nic = find_nic(*settings, job.rank);
  UNISONO_ASSIGN(joined.info, bootstrap::join(job, *settings, std::move(chosen.listener)));
  bootstrap::wipe(job.key);
  UNISONO_ASSIGN(joined.memory, map_memory(joined.info, *settings));
  return joined;
} catch (const std::exception& thrown) {
  // The other ranks wait in a round for this one.
  return Error{Code::resources, fmt::format("rank {}: {}", rounds.rank(), thrown.what())};
}

// The options with the fields that the caller's version has; the others have their defaults.
Result<unisono_init_options_t> read_options(const unisono_init_options_t* options,
                                            const unisono_comm_t* world) {
  constexpr std::int64_t kMostMs = std::int64_t{24} * 60 * 60 * 1000;  // a day
  constexpr std::size_t kOldestSize = offsetof(unisono_init_options_t, carry_on);
  if (world == nullptr) return Error{Code::argument, "world is NULL"};
  unisono_init_options_t read{};
  if (options == nullptr) return read;
  if (options->size < kOldestSize) {
    return Error{Code::argument, "options->size is not set to sizeof(unisono_init_options_t)"};
  }
  std::memcpy(&read, options, std::min(options->size, sizeof read));
  if (read.timeout_ms < 0 || read.timeout_ms > kMostMs) {
    return Error{Code::argument, fmt::format("options->timeout_ms is {}; it can be 0 .. {}",
                                             read.timeout_ms, kMostMs)};
  }
  return read;
}

// The settings of the process, with the caller's deadline.
Result<base::Settings> settings_with(const unisono_init_options_t& options) {
  const auto& settings = base::process_settings();
  if (!settings || options.timeout_ms == 0) return settings;
  base::Environment environment = base::process_environment();
  environment["UNISONO_START_TIMEOUT"] = fmt::format("{}ms", options.timeout_ms);
  return base::Settings::from(environment);
}

// A front end's jobs may be of some ranks only, and be made in any order. So the launcher's rank
// names the profile of the process, if there is a launcher.
void name_profile(const base::Settings& settings) {
  const std::string& file = settings.text(base::Setting::profile);
  if (file.empty()) return;
  const auto job =
      bootstrap::describe_job(base::process_environment(), settings, bootstrap::process_facts());
  if (!job.ok() || job->launcher == bootstrap::Launcher::none) return;
  profile::join_profile(file, {.rank = job->rank,
                               .ranks = job->ranks,
                               .job = bootstrap::launcher_name(job->launcher),
                               .machine = ""});
}

// The profile of this process, for calls that are not of its jobs. Null: there is none.
profile::Profile* profile_of_process() {
  const Result<base::Settings>& settings = base::process_settings();
  if (!settings || settings->text(base::Setting::profile).empty()) return nullptr;
  name_profile(*settings);
  profile::Profile* const found = profile::find_profile(settings->text(base::Setting::profile));
  if (found != nullptr) found->begin_job();  // it is then written at exit() at the latest
  return found;
}

std::string profiled_name(std::int32_t number, std::string (*name)(std::int32_t)) {
  if (number == UNISONO_PROFILE_NONE) return "";
  if (number < 0) return "other";
  return number < plan::kFirstUserNumber ? name(number) : "user";
}

void profile_call(profile::Profile& profile, const unisono_profiled_call_t& call) {
  const profile::Form form = call.started != 0 ? profile::Form::started : profile::Form::blocking;
  profile::Row& row = profile.row({.collective = call.collective,
                                   .op = profiled_name(call.op, plan::operator_text),
                                   .type = profiled_name(call.type, plan::type_text),
                                   .bytes_class = profile::size_class(call.bytes),
                                   .ranks = call.ranks,
                                   .hosts = std::max(1, call.hosts),
                                   .algorithm = "",
                                   .engine = call.library,
                                   .reason = call.reason});
  row.of(form).add({.bytes = call.bytes, .ns = call.ns});
}

// A rank that fails by itself takes part in the next round, which tells the others.
Result<unisono_comm_t> init_with(bootstrap::ExchangeRounds& rounds,
                                 const Result<unisono_init_options_t>& options) {
  base::set_check_rank(rounds.rank());
  base::set_log_rank(rounds.rank());
  auto rank = std::make_unique<Rank>();
  const Result<base::Settings> settings =
      options.ok() ? checked(settings_with(*options)) : Result<base::Settings>(options.error());
  Result<Joined> joined = join_over(rounds, settings);
  UNISONO_TRY(rounds.agree(joined.ok() ? base::success() : base::Status(joined.error())));
  // Only in a front end's first job: most others have some of the same ranks.
  static std::atomic<bool> is_first_job{true};
  const bool warns = rounds.rank() == 0 || warns_for_its_host(joined->info);
  if (is_first_job.exchange(false) && warns) base::log_warnings(*settings);
  rank->settings = *settings;
  name_profile(*settings);
  Result<unisono_comm_t> world = enter(std::move(joined->info), std::move(joined->memory),
                                       *settings, joined->nic, std::move(rank));
  if (world.ok()) {
    wait::CarryOn& carry_on = comms().get(*world)->owner->job->carry_on;
    carry_on.function = options->carry_on;
    carry_on.user = options->user;
  }
  return world;
}

// The error that was not yet reported to the rank, if there is one.
std::optional<Error> untold_failure(Rank& rank) {
  const std::lock_guard lock(rank.mutex);
  for (const unisono_comm_t handle : rank.comms) {
    comm::Communicator& communicator = *comms().get(handle)->communicator;
    comm::FailureState& failures = communicator.failures();
    failures.adopt();
    if (failures.has_failed() && !failures.is_reported()) return failures.tell();
  }
  return std::nullopt;
}

}  // namespace
}  // namespace unisono::api

extern "C" {

using unisono::api::fail;
using unisono::base::Code;

int unisono_init(unisono_comm_t* world) try {
  using namespace unisono::api;
  if (world == nullptr) return fail(Code::argument, "unisono_init: world is NULL");
  if (is_forked_child() || !claim_process_init()) {
    return fail(Code::state,
                "unisono_init: this process is a rank already, or was one, or its parent was "
                "when it forked; init is once per process");
  }
  auto handle = init_process();
  if (!handle) {
    release_process_init();
    return fail("unisono_init", handle.error());
  }
  *world = *handle;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  unisono::api::release_process_init();
  return fail("unisono_init", thrown);
}

int unisono_init_with(int rank, int size, const unisono_exchange_t* exchange,
                      const unisono_init_options_t* options, unisono_comm_t* world) try {
  using namespace unisono::api;
  if (world != nullptr) *world = nullptr;
  constexpr int kMost = static_cast<int>(unisono::bootstrap::kMostRanks);
  if (size < 1 || size > kMost || rank < 0 || rank >= size) {
    return fail(Code::argument, fmt::format("unisono_init_with: rank {} of {} ranks; there can be "
                                            "1 .. {} ranks, numbered from 0",
                                            rank, size, kMost));
  }
  if (exchange == nullptr || exchange->allgather == nullptr) {
    return fail(Code::argument, "unisono_init_with: exchange or its allgather is NULL");
  }
  unisono::bootstrap::ExchangeRounds rounds(
      [exchange](const void* input, void* output, std::size_t bytes) {
        return exchange->allgather(input, output, bytes, exchange->user);
      },
      rank, size);
  const auto handle = init_with(rounds, read_options(options, world));
  if (!handle) return fail("unisono_init_with", handle.error());
  *world = *handle;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_init_with", thrown);
}

int unisono_threads_create(int ranks, unisono_threads_t* threads) try {
  using namespace unisono::api;
  constexpr int kMostThreadRanks = 1024;
  if (threads == nullptr) return fail(Code::argument, "unisono_threads_create: threads is NULL");
  if (ranks < 1 || ranks > kMostThreadRanks) {
    return fail(Code::argument,
                fmt::format("unisono_threads_create: {} ranks; there can be 1 .. {}", ranks,
                            kMostThreadRanks));
  }
  auto made = make_threads(ranks);
  if (!made) return fail("unisono_threads_create", made.error());
  *threads = *made;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_threads_create", thrown);
}

int unisono_init_thread(unisono_threads_t threads, int rank, unisono_comm_t* world) try {
  using namespace unisono::api;
  ThreadJob* const job = thread_jobs().get(threads);
  if (job == nullptr) return fail(bad_threads("unisono_init_thread", threads));
  if (world == nullptr) return fail(Code::argument, "unisono_init_thread: world is NULL");
  if (rank < 0 || rank >= job->ranks) {
    return fail(Code::argument, fmt::format("unisono_init_thread: rank {} is not in 0 .. {}", rank,
                                            job->ranks - 1));
  }
  auto handle = init_thread(*job, rank);
  if (!handle) return fail("unisono_init_thread", handle.error());
  *world = *handle;
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_init_thread", thrown);
}

int unisono_threads_free(unisono_threads_t threads) try {
  using namespace unisono::api;
  // Ranks that have not finalized keep the memory.
  if (thread_jobs().remove(threads) != nullptr) return UNISONO_OK;
  return fail(bad_threads("unisono_threads_free", threads));
} catch (const std::exception& thrown) {
  return fail("unisono_threads_free", thrown);
}

int unisono_profile_call(const unisono_profiled_call_t* call) try {
  using namespace unisono::api;
  static std::atomic<unisono::profile::Profile*> known{nullptr};
  if (call == nullptr || call->size < sizeof *call) {
    return fail(Code::argument,
                "unisono_profile_call: call is NULL, or its size is not set to sizeof");
  }
  if (call->collective == nullptr || call->library == nullptr || call->reason == nullptr ||
      *call->reason == '\0') {
    return fail(Code::argument,
                "unisono_profile_call: the collective, the library or the reason is missing");
  }
  if (call->ranks < 1 || call->bytes < 0 || call->ns < 0) {
    return fail(Code::argument,
                fmt::format("unisono_profile_call: {} ranks, {} bytes, {} ns: ranks begin with 1, "
                            "the others with 0",
                            call->ranks, call->bytes, call->ns));
  }
  unisono::profile::Profile* profile = known.load(std::memory_order_acquire);
  if (profile == nullptr) known = profile = profile_of_process();
  if (profile != nullptr) profile_call(*profile, *call);
  return UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_profile_call", thrown);
}

int unisono_profile_save() {
  unisono::profile::save_profiles();
  return UNISONO_OK;
}

int unisono_finalize(unisono_comm_t world) try {
  using namespace unisono::api;
  Comm* comm = find_comm(world);
  if (comm == nullptr) return fail(bad_comm("unisono_finalize", world));
  if (comm->owner->world != world) {
    return fail(Code::argument,
                "unisono_finalize: this is not the world communicator; free it with "
                "unisono_comm_free");
  }
  const std::unique_ptr<Rank> rank(comm->owner);
  const auto untold = untold_failure(*rank);
  for (const unisono_comm_t handle : rank->comms)
    comms().get(handle)->communicator->publish_progress();
  rank->job->leave();
  while (!rank->comms.empty()) end_comm(*rank, *rank->comms.begin());
  return untold ? fail(*untold) : UNISONO_OK;
} catch (const std::exception& thrown) {
  return fail("unisono_finalize", thrown);
}

}  // extern "C"

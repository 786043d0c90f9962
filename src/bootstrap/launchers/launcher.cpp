// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/process_record.hpp"
#include "base/text.hpp"
#include "bootstrap/rendezvous/message.hpp"
#include "wire/key.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Environment;
using base::Error;
using base::Result;
using base::Setting;

constexpr std::size_t kLeastKeyLength = 16;

struct LauncherRow {
  Launcher launcher;
  // The first two hold the rank and the size. A launcher is recognised if all four, as far as
  // given, are set.
  std::array<std::string_view, 4> signature;
  std::string_view local_size;  // variable with the number of ranks on this host; empty: none
  // Variables that tell one job from another. A missing one counts as empty.
  std::array<std::string_view, 3> identity;
  // The key-value stores that it may have; the first one that is there is used.
  std::array<StoreKind, 2> stores;
};

// Order matters: mpirun and torchrun inside a Slurm allocation leave Slurm's variables in place.
constexpr std::array<LauncherRow, 5> kLaunchers{{
    {Launcher::open_mpi,
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", ""},
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR", "OMPI_MCA_ess_base_jobid"},
     {StoreKind::pmix, StoreKind::none}},
    {Launcher::hydra,
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ""},
     "MPI_LOCALNRANKS",
     {"PMI_JOBID", "", ""},
     {StoreKind::pmi, StoreKind::none}},
    {Launcher::torchrun,
     {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"},
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"},
     {StoreKind::none, StoreKind::none}},
    // Only srun sets SLURM_STEP_ID: a batch script has a SLURM_PROCID, but is no rank.
    {Launcher::slurm,
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"},
     "",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     {StoreKind::pmi, StoreKind::pmix}},
    // It does not say how many ranks are on this host.
    {Launcher::pmi,
     {"PMI_RANK", "PMI_SIZE", "", ""},
     "",
     {"PMI_JOBID", "", ""},
     {StoreKind::pmi, StoreKind::none}},
}};

std::optional<std::string> find(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  if (name.empty() || found == environment.end()) return {};
  return found->second;
}

bool is_present(const LauncherRow& row, const Environment& environment) {
  for (const std::string_view name : row.signature) {
    if (!name.empty() && !find(environment, name)) return false;
  }
  return true;
}

Result<int> number_in(const Environment& environment, std::string_view name, std::int64_t least,
                      std::int64_t most) {
  const std::string text = find(environment, name).value_or("");
  const std::optional<std::int64_t> number = base::parse_integer(text);
  if (!number || *number < least || *number > most) {
    return Error{Code::argument, fmt::format("{}=\"{}\" is not valid: a whole number from {} to {} "
                                             "is expected",
                                             name, text, least, most)};
  }
  return static_cast<int>(*number);
}

Error several_hosts(const std::string& evidence) {
  return {
      Code::unsupported,
      fmt::format("unsupported: several hosts without a rendezvous address: {}, and the launcher "
                  "has no PMI or PMIx to choose one by (srun --mpi=pmi2 has). "
                  "Give all ranks the same UNISONO_RENDEZVOUS=tcp:HOST:PORT (HOST is that of "
                  "rank 0) and UNISONO_JOB_KEY",
                  evidence)};
}

// How the launcher says that there are several hosts; empty: it says that there is one, or nothing.
Result<std::string> evidence_of_several_hosts(const LauncherRow& row,
                                              const Environment& environment, int ranks) {
  if (find(environment, row.local_size)) {
    UNISONO_ASSIGN(const int local, number_in(environment, row.local_size, 1, kMostRanks));
    if (local < ranks) {
      return fmt::format("{} placed {} of {} ranks on this host", launcher_name(row.launcher),
                         local, ranks);
    }
  }
  if (row.launcher == Launcher::slurm) {
    const std::string_view nodes =
        find(environment, "SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
    const std::string count = find(environment, nodes).value_or("1");
    if (count != "1") return fmt::format("{}={}", nodes, count);
  }
  return std::string();
}

// The job's key-value store, if the launcher has one.
Result<StoreOptions> find_store(const LauncherRow& row, const Environment& environment) {
  constexpr int kMostDescriptor = 1 << 20;
  StoreOptions store;
  for (const StoreKind kind : row.stores) {
    if (kind == StoreKind::pmi && find(environment, "PMI_FD")) {
      UNISONO_ASSIGN(store.descriptor, number_in(environment, "PMI_FD", 0, kMostDescriptor));
      store.kind = kind;
      return store;
    }
    if (kind == StoreKind::pmix && find(environment, "PMIX_NAMESPACE")) {
      store.kind = kind;
      return store;
    }
  }
  return store;
}

// Where the ranks may be on several hosts, finds the store over which they choose an address.
base::Status prepare_for_several_hosts(const LauncherRow& row, const Environment& environment,
                                       const base::Settings& settings, JobDescription& job) {
  const std::string& rendezvous = settings.text(Setting::rendezvous);
  if (rendezvous.starts_with("tcp:") || job.ranks == 1) return base::success();
  UNISONO_ASSIGN(const std::string several, evidence_of_several_hosts(row, environment, job.ranks));
  const bool unknown = row.launcher == Launcher::pmi && rendezvous.empty();
  if (several.empty() && !unknown) return base::success();
  if (rendezvous.empty()) {
    UNISONO_ASSIGN(job.store, find_store(row, environment));
  }
  if (job.store.kind == StoreKind::none && !several.empty()) return several_hosts(several);
  return base::success();
}

// Rank and size from a row's variables.
Result<JobDescription> read_row(const LauncherRow& row, const Environment& environment) {
  JobDescription job;
  job.launcher = row.launcher;
  // A step of a Slurm job may have fewer tasks than the job.
  const bool step = row.launcher == Launcher::slurm && find(environment, "SLURM_STEP_NUM_TASKS");
  const std::string_view size_name = step ? "SLURM_STEP_NUM_TASKS" : row.signature[1];
  UNISONO_ASSIGN(job.ranks, number_in(environment, size_name, 1, kMostRanks));
  UNISONO_ASSIGN(job.rank, number_in(environment, row.signature[0], 0, job.ranks - 1));
  return job;
}

std::string identity_text(const LauncherRow& row, const Environment& environment,
                          const ProcessFacts& facts) {
  std::string identity = launcher_name(row.launcher);
  bool known = false;
  for (const std::string_view name : row.identity) {
    const std::string value = find(environment, name).value_or("");
    known = known || !value.empty();
    identity += fmt::format("\n{}", value);
  }
  return known ? identity : fmt::format("{}\n{}", identity, facts.ancestor);
}

// Takes rank and size from UNISONO_RANK and UNISONO_SIZE.
Result<JobDescription> read_settings(const base::Settings& settings) {
  JobDescription job;
  job.launcher = Launcher::unisono;
  for (const Setting needed : {Setting::rank, Setting::size}) {
    if (!settings.is_set(needed)) {
      return Error{Code::argument, fmt::format("{} is not set; UNISONO_RANK and UNISONO_SIZE go "
                                               "together (`unisono run` sets both)",
                                               base::setting_row(needed).name)};
    }
  }
  job.rank = static_cast<int>(settings.integer(Setting::rank));
  job.ranks = static_cast<int>(settings.integer(Setting::size));
  if (job.rank >= job.ranks) {
    return Error{Code::argument,
                 fmt::format("UNISONO_RANK={} is not below UNISONO_SIZE={}", job.rank, job.ranks)};
  }
  return job;
}

Result<JobDescription> detect(const Environment& environment, const base::Settings& settings,
                              const ProcessFacts& facts) {
  if (settings.is_set(Setting::rank) || settings.is_set(Setting::size)) {
    return read_settings(settings);
  }
  for (const LauncherRow& row : kLaunchers) {
    if (!is_present(row, environment)) continue;
    UNISONO_ASSIGN(JobDescription job, read_row(row, environment));
    UNISONO_TRY(prepare_for_several_hosts(row, environment, settings, job));
    if (job.ranks > 1) {
      job.address.kind = Address::Kind::unix_prefix;
      job.address.name =
          fmt::format("unisono-{}-{}-{:016x}", facts.uid, launcher_name(row.launcher),
                      wire::hash(wire::Key{}, identity_text(row, environment, facts)));
    }
    return job;
  }
  return JobDescription{};
}

}  // namespace

const char* launcher_name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "none";
    case Launcher::unisono:
      return "unisono";
    case Launcher::open_mpi:
      return "openmpi";
    case Launcher::hydra:
      return "hydra";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::slurm:
      return "slurm";
    case Launcher::pmi:
      return "pmi";
  }
  return "unknown";
}

bool may_span_hosts(const JobDescription& job) {
  if (job.ranks == 1) return false;
  return job.store.kind != StoreKind::none || job.address.kind == Address::Kind::tcp;
}

ProcessFacts process_facts() {
  // Ranks may be started through a wrapper script, which is a parent of its own for each of them.
  constexpr int kMostGenerations = 8;
  ProcessFacts facts;
  facts.uid = geteuid();
  pid_t pid = getppid();
  for (int generation = 0; generation < kMostGenerations && pid > 0; ++generation) {
    const std::optional<base::ProcessRecord> process = base::read_process(pid);
    if (!process) break;
    const bool proxy = process->command.starts_with("hydra_pmi_prox");
    if (generation == 0 || proxy) facts.ancestor = fmt::format("{}:{}", pid, process->start_time);
    if (proxy) break;
    pid = process->parent;
  }
  return facts;
}

Result<JobDescription> describe_job(const Environment& environment, const base::Settings& settings,
                                    const ProcessFacts& facts) {
  UNISONO_ASSIGN(JobDescription job, detect(environment, settings, facts));
  job.key = settings.text(Setting::job_key);
  if (!job.key.empty() && job.key.size() < kLeastKeyLength) {
    return Error{Code::argument,
                 fmt::format("UNISONO_JOB_KEY has {} characters and needs {} or more "
                             "that are hard to guess",
                             job.key.size(), kLeastKeyLength)};
  }
  const std::string& rendezvous = settings.text(Setting::rendezvous);
  if (rendezvous.empty()) {
    if (job.launcher == Launcher::unisono && job.ranks > 1) {
      return Error{Code::argument,
                   "UNISONO_RENDEZVOUS is not set; with UNISONO_RANK and UNISONO_SIZE "
                   "it gives the address of the rendezvous, e.g. unix:@my-job"};
    }
    return job;
  }
  if (job.launcher == Launcher::none) {
    return Error{Code::argument,
                 "UNISONO_RENDEZVOUS is set, but no launcher gave this process a "
                 "rank; set UNISONO_RANK and UNISONO_SIZE too"};
  }
  UNISONO_ASSIGN(job.address, parse_address(rendezvous));
  job.address_given = true;
  if (job.address.kind == Address::Kind::tcp && job.address.port == 0) {
    return Error{Code::argument,
                 fmt::format("UNISONO_RENDEZVOUS={} needs a port that is not 0: all "
                             "ranks must know it",
                             rendezvous)};
  }
  if (job.address.kind == Address::Kind::tcp && job.key.empty()) {
    return Error{Code::argument,
                 "UNISONO_RENDEZVOUS is a tcp address, so UNISONO_JOB_KEY is needed: "
                 "the same secret text for all ranks"};
  }
  return job;
}

}  // namespace unisono::bootstrap

// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/launchers/launcher: rank, size and rendezvous from captured environments. The Open
// MPI and hydra ones are what Open MPI 4.1.4 and MPICH 4.0.2 set; the torchrun and Slurm ones
// follow those launchers' documentation.
#include "bootstrap/launchers/launcher.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/process_record.hpp"

namespace unisono::bootstrap::launcher_test {
namespace {

using base::Code;
using base::Environment;

const ProcessFacts kFacts{1000, "4711:123456"};

base::Result<JobDescription> describe(const Environment& environment,
                                      const ProcessFacts& facts = kFacts) {
  const base::Result<base::Settings> settings = base::Settings::from(environment);
  if (!settings.ok()) return settings.error();
  return describe_job(environment, *settings, facts);
}

JobDescription described(const Environment& environment, const ProcessFacts& facts = kFacts) {
  const auto job = describe(environment, facts);
  EXPECT_TRUE(job.ok()) << (job.ok() ? "" : job.error().message);
  return job.ok() ? *job : JobDescription();
}

void expect_error(const Environment& environment, Code code, std::string_view part) {
  const auto job = describe(environment);
  ASSERT_FALSE(job.ok()) << part;
  EXPECT_EQ(job.error().code, code) << job.error().message;
  EXPECT_NE(job.error().message.find(part), std::string::npos) << job.error().message;
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

const Environment kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"OMPI_MCA_ess_base_jobid", "1914372097"},
                           {"PMIX_NAMESPACE", "1914372097"},
                           {"PMIX_RANK", "1"},
                           {"PMIX_SERVER_TMPDIR", "/tmp/ompi.vm.0/pid.7909"}};
const Environment kHydra{{"PMI_RANK", "2"},
                         {"PMI_SIZE", "4"},
                         {"PMI_FD", "8"},
                         {"MPI_LOCALNRANKS", "4"},
                         {"MPI_LOCALRANKID", "2"}};
const Environment kTorchrun{{"RANK", "3"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "3"},
                            {"LOCAL_WORLD_SIZE", "8"},
                            {"MASTER_ADDR", "127.0.0.1"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_RUN_ID", "none"},
                            {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Environment kSlurm{{"SLURM_PROCID", "1"},        {"SLURM_NTASKS", "4"},
                         {"SLURM_JOB_ID", "812"},      {"SLURM_STEP_ID", "0"},
                         {"SLURM_NNODES", "1"},        {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "2"}};
const Environment kUnisono{{"UNISONO_RANK", "1"},
                           {"UNISONO_SIZE", "2"},
                           {"UNISONO_RENDEZVOUS", "unix:@job"},
                           {"UNISONO_JOB_KEY", "0123456789abcdef"}};

TEST(Launcher, NoneIsAJobOfOne) {
  const JobDescription job = described({{"HOME", "/root"}});
  EXPECT_EQ(job.launcher, Launcher::none);
  EXPECT_EQ(job.rank, 0);
  EXPECT_EQ(job.ranks, 1);
  EXPECT_TRUE(job.address.name.empty());
}

TEST(Launcher, Unisono) {
  const JobDescription job = described(kUnisono);
  EXPECT_EQ(job.launcher, Launcher::unisono);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.ranks, 2);
  EXPECT_EQ(address_text(job.address), "unix:@job");
  EXPECT_TRUE(job.address_given);
  EXPECT_EQ(job.key, "0123456789abcdef");
}

TEST(Launcher, OpenMpi) {
  const JobDescription job = described(kOpenMpi);
  EXPECT_EQ(job.launcher, Launcher::open_mpi);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.ranks, 3);
  EXPECT_FALSE(job.address_given);
  EXPECT_TRUE(job.address.name.starts_with("unisono-1000-openmpi-")) << job.address.name;
  EXPECT_EQ(job.address.kind, Address::Kind::unix_prefix) << "others can guess the name";
}

TEST(Launcher, Hydra) {
  const JobDescription job = described(kHydra);
  EXPECT_EQ(job.launcher, Launcher::hydra);
  EXPECT_EQ(job.rank, 2);
  EXPECT_EQ(job.ranks, 4);
}

TEST(Launcher, Torchrun) {
  const JobDescription job = described(kTorchrun);
  EXPECT_EQ(job.launcher, Launcher::torchrun);
  EXPECT_EQ(job.rank, 3);
  EXPECT_EQ(job.ranks, 8);
}

TEST(Launcher, SlurmStep) {
  const JobDescription job = described(kSlurm);
  EXPECT_EQ(job.launcher, Launcher::slurm);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.ranks, 2);  // of the step, not of the job
  EXPECT_EQ(described(without(kSlurm, "SLURM_STEP_NUM_TASKS")).ranks, 4);
}

TEST(Launcher, ABatchScriptIsNoRank) {
  EXPECT_EQ(described(without(kSlurm, "SLURM_STEP_ID")).launcher, Launcher::none);
}

TEST(Launcher, InnermostWins) {
  EXPECT_EQ(described(with(kSlurm, kOpenMpi)).launcher, Launcher::open_mpi);
  EXPECT_EQ(described(with(kSlurm, kTorchrun)).launcher, Launcher::torchrun);
  EXPECT_EQ(described(with(kOpenMpi, kUnisono)).launcher, Launcher::unisono);
}

TEST(Launcher, RanksOfOneJobGetOneAddressAndOtherJobsOthers) {
  const auto address = [](const Environment& environment, const ProcessFacts& facts = kFacts) {
    return described(environment, facts).address.name;
  };
  EXPECT_EQ(address(kOpenMpi), address(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})));
  EXPECT_EQ(address(kOpenMpi), address(kOpenMpi, {1000, "other:1"}));
  EXPECT_NE(address(kOpenMpi), address(kOpenMpi, {1001, kFacts.ancestor}));
  EXPECT_NE(address(kOpenMpi), address(with(kOpenMpi, {{"PMIX_NAMESPACE", "1914372098"}})));
  // Without a job id, hydra's ranks are known by their common ancestor.
  EXPECT_EQ(address(kHydra), address(with(kHydra, {{"PMI_RANK", "0"}})));
  EXPECT_NE(address(kHydra), address(kHydra, {1000, "4711:123457"}));
  const Environment with_job = with(kHydra, {{"PMI_JOBID", "77.0"}});
  EXPECT_EQ(address(with_job), address(with_job, {1000, "4711:123457"}));
  EXPECT_NE(address(kTorchrun), address(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}})));
  EXPECT_NE(address(kSlurm), address(with(kSlurm, {{"SLURM_STEP_ID", "1"}})));
}

TEST(Launcher, AJobOfOneNeedsNoRendezvous) {
  const JobDescription job = described(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                                       {"OMPI_COMM_WORLD_SIZE", "1"},
                                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
  EXPECT_EQ(job.ranks, 1);
  EXPECT_TRUE(job.address.name.empty());
}

TEST(Launcher, RendezvousOverridesTheDerivedAddress) {
  const JobDescription job = described(with(kOpenMpi, {{"UNISONO_RENDEZVOUS", "tcp:127.0.0.1:7000"},
                                                       {"UNISONO_JOB_KEY", "0123456789abcdef"}}));
  EXPECT_EQ(job.launcher, Launcher::open_mpi);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(address_text(job.address), "tcp:127.0.0.1:7000");
  EXPECT_TRUE(job.address_given);
}

TEST(Launcher, SeveralHostsUseTheLaunchersStore) {
  const JobDescription open_mpi = described(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(open_mpi.store.kind, StoreKind::pmix);
  const JobDescription hydra = described(with(kHydra, {{"MPI_LOCALNRANKS", "1"}}));
  EXPECT_EQ(hydra.store.kind, StoreKind::pmi);
  EXPECT_EQ(hydra.store.descriptor, 8);
  const Environment nodes = with(kSlurm, {{"SLURM_NNODES", "2"}});
  // srun --mpi=pmix, and --mpi=pmi2, which sets PMI's variables of rank and size as well.
  EXPECT_EQ(described(with(nodes, {{"PMIX_NAMESPACE", "slurm.pmix.7.0"}})).store.kind,
            StoreKind::pmix);
  const JobDescription pmi2 =
      described(with(nodes, {{"PMI_FD", "3"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}));
  EXPECT_EQ(pmi2.launcher, Launcher::slurm);
  EXPECT_EQ(pmi2.store.kind, StoreKind::pmi);
  expect_error(with(kHydra, {{"MPI_LOCALNRANKS", "1"}, {"PMI_FD", "x"}}), Code::argument,
               "PMI_FD=\"x\"");
}

TEST(Launcher, OneHostNeedsNoStore) {
  for (const Environment& environment : {kOpenMpi, kHydra, kTorchrun, kSlurm}) {
    EXPECT_EQ(described(environment).store.kind, StoreKind::none);
  }
}

TEST(Launcher, ALauncherThatSaysNothingOfHostsIsAskedForItsStore) {
  const Environment flux{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "5"}};
  const JobDescription job = described(flux);
  EXPECT_EQ(job.launcher, Launcher::pmi);
  EXPECT_EQ(job.rank, 1);
  EXPECT_EQ(job.store.kind, StoreKind::pmi);
  // Without one, the ranks are taken to be on one host.
  EXPECT_EQ(described(without(flux, "PMI_FD")).store.kind, StoreKind::none);
  EXPECT_EQ(described(with(flux, {{"UNISONO_RENDEZVOUS", "unix:@here"}})).store.kind,
            StoreKind::none);
}

TEST(Launcher, SeveralHostsWithoutAStoreNeedAnAddress) {
  expect_error(without(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}), "PMIX_NAMESPACE"),
               Code::unsupported,
               "openmpi placed 2 of 3 ranks on this host, and the launcher has no PMI or PMIx to "
               "choose one by (srun --mpi=pmi2 has). Give all ranks the same "
               "UNISONO_RENDEZVOUS=tcp:HOST:PORT");
  expect_error(without(with(kHydra, {{"MPI_LOCALNRANKS", "1"}}), "PMI_FD"), Code::unsupported,
               "several hosts");
  expect_error(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}}), Code::unsupported, "several hosts");
  expect_error(with(kSlurm, {{"SLURM_NNODES", "2"}}), Code::unsupported, "SLURM_NNODES=2");
  EXPECT_TRUE(describe(with(kSlurm, {{"SLURM_NNODES", "2"}, {"SLURM_STEP_NUM_NODES", "1"}})).ok());
}

TEST(Launcher, SeveralHostsUseATcpAddress) {
  const Environment tcp{{"UNISONO_RENDEZVOUS", "tcp:10.0.0.1:7000"},
                        {"UNISONO_JOB_KEY", "0123456789abcdef"}};
  for (const Environment& spread :
       {with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
        with(kHydra, {{"MPI_LOCALNRANKS", "1"}}), with(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}}),
        with(kSlurm, {{"SLURM_NNODES", "2"}})}) {
    const JobDescription job = described(with(spread, tcp));
    EXPECT_EQ(address_text(job.address), "tcp:10.0.0.1:7000");
    EXPECT_EQ(job.store.kind, StoreKind::none);
    expect_error(with(spread, {{"UNISONO_RENDEZVOUS", "unix:@here"}}), Code::unsupported,
                 "several hosts");
  }
}

TEST(Launcher, OnlyAJobWithAStoreOrATcpAddressMaySpanHosts) {
  const Environment tcp{{"UNISONO_RENDEZVOUS", "tcp:10.0.0.1:7000"},
                        {"UNISONO_JOB_KEY", "0123456789abcdef"}};
  EXPECT_TRUE(may_span_hosts(described(with(kHydra, {{"MPI_LOCALNRANKS", "1"}}))));
  EXPECT_TRUE(may_span_hosts(described(with(kUnisono, tcp))));
  EXPECT_FALSE(may_span_hosts(described(kHydra)));
  EXPECT_FALSE(may_span_hosts(described(kUnisono)));
  EXPECT_FALSE(may_span_hosts(
      described(with(with(kUnisono, tcp), {{"UNISONO_RANK", "0"}, {"UNISONO_SIZE", "1"}}))));
}

TEST(Launcher, WrongNumbersAreNamed) {
  expect_error(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "3"}}), Code::argument,
               "OMPI_COMM_WORLD_RANK=\"3\" is not valid: a whole number from 0 to 2");
  expect_error(with(kHydra, {{"PMI_SIZE", "many"}}), Code::argument, "PMI_SIZE=\"many\"");
  expect_error(with(kUnisono, {{"UNISONO_RANK", "2"}}), Code::argument,
               "UNISONO_RANK=2 is not below UNISONO_SIZE=2");
}

TEST(Launcher, IncompleteSettingsAreNamed) {
  expect_error(without(kUnisono, "UNISONO_SIZE"), Code::argument, "UNISONO_SIZE is not set");
  expect_error(without(kUnisono, "UNISONO_RANK"), Code::argument, "UNISONO_RANK is not set");
  expect_error(without(kUnisono, "UNISONO_RENDEZVOUS"), Code::argument,
               "UNISONO_RENDEZVOUS is not set");
  expect_error({{"UNISONO_RENDEZVOUS", "unix:@job"}}, Code::argument, "UNISONO_RANK");
  expect_error(with(kUnisono, {{"UNISONO_RENDEZVOUS", "ftp:x"}}), Code::argument, "ftp:x");
  expect_error(with(kUnisono, {{"UNISONO_JOB_KEY", "short"}}), Code::argument, "16 or more");
  expect_error(with(without(kUnisono, "UNISONO_JOB_KEY"), {{"UNISONO_RENDEZVOUS", "tcp:h:1"}}),
               Code::argument, "UNISONO_JOB_KEY is needed");
  expect_error(with(kUnisono, {{"UNISONO_RENDEZVOUS", "tcp:h:0"}}), Code::argument, "port");
}

TEST(Launcher, AShortKeyIsNotShown) {
  const auto job = describe(with(kUnisono, {{"UNISONO_JOB_KEY", "hush"}}));
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.error().message.find("hush"), std::string::npos);
}

TEST(Launcher, FactsOfThisProcess) {
  const ProcessFacts facts = process_facts();
  EXPECT_EQ(facts.uid, geteuid());
  EXPECT_NE(facts.ancestor.find(':'), std::string::npos) << facts.ancestor;
  const auto self = base::read_process(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_EQ(self->parent, getppid());
  EXPECT_EQ(self->state, 'R');
  EXPECT_FALSE(self->start_time.empty());
  EXPECT_FALSE(base::read_process(-1).has_value());
}

// Each child ends, and is gone at once, while it is being read: some between the open and the read.
TEST(Launcher, AProcessThatEndsWhileItIsReadIsNone) {
  constexpr int kChildren = 200;
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(0);
    for (bool here = true; here;) ASSERT_NO_THROW(here = base::read_process(child).has_value());
  }
  std::signal(SIGCHLD, before);
}

}  // namespace
}  // namespace unisono::bootstrap::launcher_test

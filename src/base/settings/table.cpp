// SPDX-License-Identifier: BSD-3-Clause
// The one table of settings. A new setting is one enumerator in settings.hpp and one row here; the
// check of values, `unisono info --config`, the reference page and the warning for misspelt names
// follow from it.
#include <limits>

#include "base/clock.hpp"
#include "base/settings/settings.hpp"

namespace unisono::base {
namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kTiB = std::int64_t{1} << 40;
constexpr std::int64_t kDay = 24 * 3600 * kSecond;
// Far above what one machine runs; it bounds tables that are sized by the number of ranks.
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostChannels = 1024;
constexpr std::int64_t kMostOperations = std::int64_t{1} << 62;

constexpr SettingAudience kUser = SettingAudience::user;
constexpr SettingAudience kLauncher = SettingAudience::launcher;
constexpr SettingAudience kTest = SettingAudience::test;

// clang-format off
constexpr std::array<SettingRow, kSettingCount> kTable{{
    {Setting::start_timeout, "UNISONO_START_TIMEOUT", SettingType::time, "30s", kMillisecond, kDay, false, "", kUser,
     "Limit of each phase of the start; then it ends with an error that names the missing ranks."},
    {Setting::detect_timeout, "UNISONO_DETECT_TIMEOUT", SettingType::time, "1s", 10 * kMillisecond, kDay, false, "", kUser,
     "If a rank dies or is stopped, waiting calls of ranks on its host return an error within this time. The error names the rank. Ranks of other hosts are informed at once."},
    {Setting::detect_timeout_hosts, "UNISONO_DETECT_TIMEOUT_HOSTS", SettingType::time, "10s", 10 * kMillisecond, kDay, false, "", kUser,
     "A rank of another host that does not answer for this time is lost. The job waits through shorter outages of the network and logs them."},
    {Setting::timeout, "UNISONO_TIMEOUT", SettingType::time, "0", 0, kDay, false, "", kUser,
     "Deadline of one operation; 0 means none."},
    {Setting::engine, "UNISONO_ENGINE", SettingType::choice, "auto", 0, 0, false, "auto|inline|helping", kUser,
     "Ranks that execute the steps of a collective: the calling rank (inline), or any awake rank (helping)."},
    {Setting::agent, "UNISONO_AGENT", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Whether a thread of each rank progresses split-phase operations while the application computes. auto: between hosts, and where cores are left."},
    {Setting::algorithm, "UNISONO_ALGORITHM", SettingType::text, "", 0, 0, false, "", kUser,
     "Algorithms to use, as in allreduce:pairwise@0-4K;ring@4K-inf, or to exclude, as in barrier:^pairwise. The how-to page on choosing an algorithm has the grammar."},
    {Setting::reproducible, "UNISONO_REPRODUCIBLE", SettingType::choice, "0", 0, 0, false, "0|1|ranks", kUser,
     "Sums of floating-point numbers that always have the same bits. 1: exact and rounded once, whatever the algorithm, engine, network and number of ranks. ranks: added in the order of ranks, so that the bits depend on the number of ranks only. A rank that does not set it has rank 0's."},
    {Setting::heterogeneous, "UNISONO_HETEROGENEOUS", SettingType::toggle, "off", 0, 0, false, "", kUser,
     "on: one process applies the operator of a reduction, and its results go to the others. It is the root of a reduce, otherwise rank 0. So processors whose arithmetic differs cannot give ranks different bits. auto: off. A rank that does not set it has rank 0's."},
    {Setting::machine, "UNISONO_MACHINE", SettingType::text, "", 0, 0, false, "", kUser,
     "Machine file by which the library chooses. default: the one in the library. Not set: the one that unisono tune wrote on this machine, or else default. Rank 0's applies to all ranks."},
    {Setting::learn, "UNISONO_LEARN", SettingType::toggle, "off", 0, 0, false, "", kUser,
     "Whether measured times of blocking calls replace the algorithms that the library has chosen. At most one call in 64 tries another one. The same on all ranks, which then make each call in the same form. auto: off."},
    {Setting::learn_until, "UNISONO_LEARN_UNTIL", SettingType::integer, "0", 0, kMostOperations, false, "", kUser,
     "With UNISONO_LEARN, after so many operations of a communicator its algorithms stay as they are; 0: never. The same on all ranks."},
    {Setting::spin, "UNISONO_SPIN", SettingType::time, "auto", 0, kSecond, true, "", kUser,
     "How long a waiting rank spins before it yields the processor; auto decides by ranks and usable cores."},
    {Setting::short_slices, "UNISONO_SHORT_SLICES", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Whether waiting threads ask the kernel for short time slices (Linux 6.12 and later). Then a woken rank need not wait for another program's slice. auto: where ranks share cores or the job spans hosts, elsewhere once a rank has lost its core for a slice. on: from the start."},
    {Setting::single_copy, "UNISONO_SINGLE_COPY", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Long messages go from buffer to buffer in one copy, if a trial at the start shows that ranks can read each other's memory. on: an error if they cannot. The same on all ranks."},
    {Setting::single_copy_from, "UNISONO_SINGLE_COPY_FROM", SettingType::size, "auto", 64, kTiB, true, "", kUser,
     "A vector or block of at least so many bytes goes in one copy. auto: what the machine file says (1G in the default one), where each rank has a core and nothing is reduced. The same on all ranks."},
    {Setting::channels, "UNISONO_CHANNELS", SettingType::integer, "0", 0, kMostChannels, false, "", kUser,
     "Small operations of one communicator that may be in progress at once, rounded down to a power of two; 0: the library chooses."},
    {Setting::buffers, "UNISONO_BUFFERS", SettingType::size, "64M", 64 * kKiB, kTiB, false, "", kUser,
     "Most shared memory that one communicator may use for its buffers on a host. On one host, each doubling beyond 64M doubles the parts of long messages, up to 4 MiB at 2G. Ranks that compute meanwhile wait less often with long parts."},
    {Setting::shared_limit, "UNISONO_SHARED_LIMIT", SettingType::size, "16G", kMiB, 16 * kTiB, false, "", kUser,
     "Address space reserved for the job's shared memory. Only used pages take memory. Each of several hosts gets an equal part, the limit divided by the number of hosts."},
    {Setting::networks, "UNISONO_NETWORKS", SettingType::text, "", 0, 0, false, "", kUser,
     "Addresses of a host that its ranks may use between hosts: interfaces, addresses and networks, as in eth0,10.0.0.0/8. ^ excludes, as in ^docker0. Not set: the address that routes to the other hosts."},
    {Setting::multicast, "UNISONO_MULTICAST", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Messages to many hosts go by IP multicast, if a trial at the start shows that the network carries it. on: an error if it does not."},
    {Setting::multicast_by, "UNISONO_MULTICAST_BY", SettingType::choice, "ip", 0, 0, false, "ip|verbs", kUser,
     "Carrier of messages to many hosts. ip: IP multicast. verbs: unreliable datagrams of an RDMA device (RoCE v2) at the address of the job's network, or else IP multicast. The same on all ranks."},
    {Setting::multicast_group, "UNISONO_MULTICAST_GROUP", SettingType::text, "", 0, 0, false, "", kUser,
     "Multicast address, optionally with a port, as in 239.255.1.2:5000. Not set: one of 239.255.0.0/16 or ff12::/16, derived from the job."},
    {Setting::multicast_ttl, "UNISONO_MULTICAST_TTL", SettingType::integer, "1", 0, 255, false, "", kUser,
     "Reach of multicast: 1 is this network; each router on the way takes one more."},
    {Setting::datagram, "UNISONO_DATAGRAM", SettingType::size, "auto", 508, 65507, true, "", kUser,
     "Most bytes of a datagram between hosts. IP and UDP add 28 bytes, or 48 with IPv6. auto: as much as the interface carries in one piece, and less where longer datagrams vanish on the way. The smallest value of all ranks applies."},
    {Setting::bulk, "UNISONO_BULK", SettingType::choice, "auto", 0, 0, false, "udp|tcp|ofi|verbs|auto", kUser,
     "Carrier of long messages between hosts. udp: as all others. tcp: connections of the kernel's TCP, made when they are needed. ofi: remote writes by libfabric, without a tag of the job's key. verbs: remote writes by an RDMA device, without it, too. tcp, ofi and verbs are an error where a host cannot. auto: tcp if all hosts can."},
    {Setting::bulk_from, "UNISONO_BULK_FROM", SettingType::size, "auto", 1 * kKiB, kTiB, true, "", kUser,
     "A piece of a message of at least so many bytes counts as long. auto: as the machine file says."},
    {Setting::bulk_tags, "UNISONO_BULK_TAGS", SettingType::toggle, "on", 0, 0, false, "", kUser,
     "Long messages by TCP bear a tag of the job's key. off: only their headers do, as with ofi and verbs, which saves processor time on a network that only the job's hosts can write to. Two ranks of which one has it on use tags."},
    {Setting::ofi_provider, "UNISONO_OFI_PROVIDER", SettingType::text, "tcp", 0, 0, false, "", kUser,
     "libfabric's name of the provider that carries long messages. Tested: tcp. Not tested: verbs, efa, cxi."},
    {Setting::verbs_device, "UNISONO_VERBS_DEVICE", SettingType::text, "", 0, 0, false, "", kUser,
     "RDMA device that carries long messages with UNISONO_BULK=verbs, and multicasts with UNISONO_MULTICAST_BY=verbs, as in mlx5_0 or, with its port, mlx5_0:1. Not set: the one at the address of the job's network; for long messages otherwise the first with an active port."},
    {Setting::nic, "UNISONO_NIC", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Small collectives of a communicator take the NIC path, if each of its hosts has a unisonod and a trial succeeds. on: a warning if the job's hosts cannot."},
    {Setting::nic_socket, "UNISONO_NIC_SOCKET", SettingType::text, "/run/unisono/nic.sock", 0, 0, false, "", kUser,
     "Socket of this host's unisonod."},
    {Setting::nic_splits, "UNISONO_NIC_SPLITS", SettingType::integer, "auto", 0, 2, true, "", kUser,
     "How often a vector is halved in the NIC path; each piece goes by its own tree. auto: as often as it pays by the measured costs of packets. The same on all ranks."},
    {Setting::nic_rooted, "UNISONO_NIC_ROOTED", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Small reduces and broadcasts take the NIC path. Ranks that receive something wait there until all have called, unless the root of a broadcast multicasts. auto: such broadcasts on 8 hosts and more, and reduces if hosts in between would have to forward them otherwise. The same on all ranks."},
    {Setting::check, "UNISONO_CHECK", SettingType::toggle, "off", 0, 0, false, "", kUser,
     "Prove the schedules of all ranks before a plan's first use. With local counts (gatherv and others) only the schedule that the rank knows. The tests have proved the library's own."},
    {Setting::log, "UNISONO_LOG", SettingType::choice, "warn", 0, 0, false, "error|warn|info|debug", kUser,
     "Least severe messages to write to stderr."},
    {Setting::profile, "UNISONO_PROFILE", SettingType::text, "", 0, 0, false, "", kUser,
     "Each rank counts and times its collectives, and writes them at its end to this file, with .RANK behind its name. unisono profile merges and shows the files."},
    {Setting::mpi, "UNISONO_MPI", SettingType::text, "on", 0, 0, false, "", kUser,
     "Collectives of an MPI program that Unisono does. on: all. off: none. Names, as in alltoall,scan: all others; the host MPI does these. auto: some calls are tried with the host MPI, which then does those that it does faster; results keep their bits. trial, also among names: the same with all collectives. The drop-in for MPI programs reads it."},
    {Setting::mpi_tune, "UNISONO_MPI_TUNE", SettingType::text, "", 0, 0, false, "", kLauncher,
     "File for the times of an MPI program's collectives, measured before its first one. `unisono mpirun --tune` sets it; the drop-in for MPI programs reads it."},
    {Setting::rank, "UNISONO_RANK", SettingType::integer, "", 0, kMostRanks - 1, false, "", kLauncher,
     "This process's rank."},
    {Setting::size, "UNISONO_SIZE", SettingType::integer, "", 1, kMostRanks, false, "", kLauncher,
     "Number of ranks in the job."},
    {Setting::rendezvous, "UNISONO_RENDEZVOUS", SettingType::text, "", 0, 0, false, "", kLauncher,
     "Rendezvous address of the ranks: unix:@NAME (an abstract socket) or tcp:HOST:PORT."},
    {Setting::job_key, "UNISONO_JOB_KEY", SettingType::text, "", 0, 0, false, "", kLauncher,
     "Secret shared by the ranks of one job, 16 characters or more; needed with a tcp rendezvous."},
    {Setting::first_sequence, "UNISONO_FIRST_SEQUENCE", SettingType::integer, "1", 1, std::int64_t{1} << 62, false, "", kTest,
     "Sequence number of a communicator's first operation, to test the wrap."},
    {Setting::fault, "UNISONO_FAULT", SettingType::text, "", 0, 0, false, "", kTest,
     "Faults of this rank's packets to other hosts, as in loss=1%,duplicates=5%,reorder=1%,delay=200us,seed=7."},
}};
// clang-format on

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].id != static_cast<Setting>(i)) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::span<const SettingRow, kSettingCount> setting_table() { return kTable; }

const SettingRow& setting_row(Setting id) { return kTable[static_cast<std::size_t>(id)]; }

}  // namespace unisono::base

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

constexpr SettingAudience kUser = SettingAudience::user;
constexpr SettingAudience kLauncher = SettingAudience::launcher;
constexpr SettingAudience kTest = SettingAudience::test;

// clang-format off
constexpr std::array<SettingRow, kSettingCount> kTable{{
    {Setting::start_timeout, "UNISONO_START_TIMEOUT", SettingType::time, "30s", kMillisecond, kDay, false, "", kUser,
     "How long each phase of the start may take before it ends with an error that names the missing ranks."},
    {Setting::detect_timeout, "UNISONO_DETECT_TIMEOUT", SettingType::time, "1s", 10 * kMillisecond, kDay, false, "", kUser,
     "Within this time of the death of a rank, or of its being stopped, every call of its own host's ranks that waits for it returns an error that names it; those of other hosts are told at once."},
    {Setting::detect_timeout_hosts, "UNISONO_DETECT_TIMEOUT_HOSTS", SettingType::time, "10s", 10 * kMillisecond, kDay, false, "", kUser,
     "How long a rank of another host may not answer before it is declared lost; the job waits through an outage of the network that is shorter, and the log says so."},
    {Setting::timeout, "UNISONO_TIMEOUT", SettingType::time, "0", 0, kDay, false, "", kUser,
     "Deadline of one operation; 0 means none."},
    {Setting::engine, "UNISONO_ENGINE", SettingType::choice, "auto", 0, 0, false, "auto|inline|helping", kUser,
     "Who performs the steps of a collective: the calling rank (inline) or any rank that is awake (helping)."},
    {Setting::agent, "UNISONO_AGENT", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Whether a thread of each rank carries split-phase operations on while the application computes; auto: between hosts, and where cores are left."},
    {Setting::algorithm, "UNISONO_ALGORITHM", SettingType::text, "", 0, 0, false, "", kUser,
     "Which algorithms to take, as in allreduce:pairwise@0-4K;ring@4K-inf, or to leave alone, as in barrier:^pairwise; the how-to page on choosing an algorithm has the grammar."},
    {Setting::spin, "UNISONO_SPIN", SettingType::time, "auto", 0, kSecond, true, "", kUser,
     "How long a waiting rank spins before it yields the processor; auto decides by ranks and usable cores."},
    {Setting::short_slices, "UNISONO_SHORT_SLICES", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Whether threads that wait ask the kernel for short time slices, so that a wake-up need not wait for the end of another program's (Linux 6.12 and later); auto: where ranks share cores or the job spans hosts, and elsewhere once they have lost the core for a slice; on: from the start."},
    {Setting::single_copy, "UNISONO_SINGLE_COPY", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Long messages go from buffer to buffer in one copy where a try at the start shows that ranks can read each other's memory; on: it is an error if they cannot."},
    {Setting::single_copy_from, "UNISONO_SINGLE_COPY_FROM", SettingType::size, "auto", 64, kTiB, true, "", kUser,
     "Bytes of a vector or block from which it goes in one copy; auto: 4M, where ranks have a core each and nothing is reduced."},
    {Setting::channels, "UNISONO_CHANNELS", SettingType::integer, "0", 0, kMostChannels, false, "", kUser,
     "Small operations of one communicator that may be under way at once, rounded down to a power of two; 0 lets the library choose."},
    {Setting::buffers, "UNISONO_BUFFERS", SettingType::size, "64M", 64 * kKiB, kTiB, false, "", kUser,
     "Most shared memory that one communicator may use for its buffers."},
    {Setting::shared_limit, "UNISONO_SHARED_LIMIT", SettingType::size, "16G", kMiB, 16 * kTiB, false, "", kUser,
     "Address space reserved for the job's shared memory; memory is used only as far as it is needed."},
    {Setting::networks, "UNISONO_NETWORKS", SettingType::text, "", 0, 0, false, "", kUser,
     "Which of a host's addresses its ranks may use between hosts: interfaces, addresses and networks, as in eth0,10.0.0.0/8, or with ^ those to leave alone, as in ^docker0; not set: the one from which the other hosts are reached."},
    {Setting::multicast, "UNISONO_MULTICAST", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Messages to many hosts go by IP multicast where a try at the start shows that the network carries it; on: it is an error if it does not."},
    {Setting::multicast_group, "UNISONO_MULTICAST_GROUP", SettingType::text, "", 0, 0, false, "", kUser,
     "Multicast address, and port if you like, as in 239.255.1.2:5000; not set: one of 239.255.0.0/16 or ff12::/16 that follows from the job."},
    {Setting::multicast_ttl, "UNISONO_MULTICAST_TTL", SettingType::integer, "1", 0, 255, false, "", kUser,
     "How far multicast goes: 1 is this network, each router on the way takes one more."},
    {Setting::datagram, "UNISONO_DATAGRAM", SettingType::size, "auto", 508, 65507, true, "", kUser,
     "Most bytes of a datagram between hosts, of which IP and UDP make a packet that is 28 bytes longer, or 48 with IPv6; auto: what the interface carries in one piece, and less where longer ones turn out to vanish on the way. The least of all ranks' holds."},
    {Setting::bulk, "UNISONO_BULK", SettingType::choice, "udp", 0, 0, false, "udp|ofi|auto", kUser,
     "What carries long messages between hosts: udp, as all others; ofi, remote writes by libfabric, which bear no tag of the job's key and are an error where a host cannot; auto: ofi where all hosts can."},
    {Setting::bulk_from, "UNISONO_BULK_FROM", SettingType::size, "64K", 1 * kKiB, kTiB, false, "", kUser,
     "Bytes of a message's piece from which it counts as long."},
    {Setting::ofi_provider, "UNISONO_OFI_PROVIDER", SettingType::text, "tcp", 0, 0, false, "", kUser,
     "libfabric's name of the provider that carries long messages; tested: tcp. Not tested: verbs, efa, cxi."},
    {Setting::nic, "UNISONO_NIC", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Small blocking collectives of a communicator go by the NIC path where each of its hosts has a unisonod, and a try shows that it works; on: it is a warning if the job's hosts cannot."},
    {Setting::nic_socket, "UNISONO_NIC_SOCKET", SettingType::text, "/run/unisono/nic.sock", 0, 0, false, "", kUser,
     "Where this host's unisonod serves."},
    {Setting::nic_splits, "UNISONO_NIC_SPLITS", SettingType::integer, "auto", 0, 2, true, "", kUser,
     "How often a vector is halved in the NIC path, each piece of which goes by a tree of its own; auto: as often as it pays by the measured costs of packets. The same on all ranks."},
    {Setting::nic_rooted, "UNISONO_NIC_ROOTED", SettingType::toggle, "auto", 0, 0, false, "", kUser,
     "Small reductions to a root and broadcasts go by the NIC path, where all ranks wait until all have called; auto: reductions, where otherwise hosts in between would pass them on. The same on all ranks."},
    {Setting::check, "UNISONO_CHECK", SettingType::toggle, "off", 0, 0, false, "", kUser,
     "Prove the schedules of all ranks (of a gatherv and its like, what the rank knows of them) before a plan's first "
     "use; the tests have proved the library's own."},
    {Setting::log, "UNISONO_LOG", SettingType::choice, "warn", 0, 0, false, "error|warn|info|debug", kUser,
     "Least serious messages to write to stderr."},
    {Setting::rank, "UNISONO_RANK", SettingType::integer, "", 0, kMostRanks - 1, false, "", kLauncher,
     "This process's rank."},
    {Setting::size, "UNISONO_SIZE", SettingType::integer, "", 1, kMostRanks, false, "", kLauncher,
     "Number of ranks in the job."},
    {Setting::rendezvous, "UNISONO_RENDEZVOUS", SettingType::text, "", 0, 0, false, "", kLauncher,
     "Where the ranks meet: unix:@NAME (an abstract socket) or tcp:HOST:PORT."},
    {Setting::job_key, "UNISONO_JOB_KEY", SettingType::text, "", 0, 0, false, "", kLauncher,
     "Secret shared by the ranks of one job, 16 characters or more; needed with a tcp rendezvous."},
    {Setting::first_sequence, "UNISONO_FIRST_SEQUENCE", SettingType::integer, "1", 1, std::int64_t{1} << 62, false, "", kTest,
     "Sequence number of a communicator's first operation, to test the wrap."},
    {Setting::fault, "UNISONO_FAULT", SettingType::text, "", 0, 0, false, "", kTest,
     "What this rank's packets to other hosts suffer, as in loss=1%,duplicates=5%,reorder=1%,delay=200us,seed=7."},
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

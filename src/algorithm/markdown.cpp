// SPDX-License-Identifier: BSD-3-Clause
// The table as a page for people: docs/reference/algorithms.md is this function's output, and a
// test compares the two. Pure; any thread.
#include <fmt/format.h>

#include "algorithm/algorithm.hpp"

namespace unisono::algorithm {

namespace {

constexpr std::string_view kHead = R"(# Algorithms

This page lists all algorithms with their idea, steps, bytes, parameters and source. It is generated
from the rows in `src/algorithm/*/rows.cpp` by `unisono info --algorithms --format markdown`; do not
edit it.

| in the formulas | is |
| --- | --- |
| P | the number of ranks |
| n | the vector |
| m | the block of one rank |
| M | the largest power of two that is not above P |
| f | the degree of a tree |
| l | its fan-in |
| *steps* | at most so many messages on the longest path |
| *bytes* | at most so many bytes that one rank sends; a multicast counts once |

Unless *only* says otherwise, an algorithm works for any P from 1, any root and any count. It works
in place or not, and for blocks of different lengths.

*Order* says whether a reduction combines in the order of ranks. If it does, the operator need not
commute. In all of them the order of combination depends on P, the root and the parameters only. An
allreduce gives all ranks the same bits.

*Sums* are exact where no partial sum is rounded. [Reproducible
sums](../explanation/reproducible-sums.md) need such an algorithm. The library takes it for nothing
else, unless UNISONO_ALGORITHM asks for it.

A *mock-up* does the work of its collective by others, one after the other. Each part has three
parameters: its algorithm, and two that this algorithm may have.
)";

constexpr std::string_view kSources = R"(
## Sources

- Barnett, Gupta, Payne, Shuler, van de Geijn and Watts. *Interprocessor Collective Communication
  Library (InterCom).* SHPCC 1994.
- Bruck, Ho, Kipnis, Upfal and Weathersby. *Efficient Algorithms for All-to-All Communications in
  Multiport Message-Passing Systems.* IEEE TPDS 8(11), 1997.
- Buntinas, Panda and Sadayappan. *Fast NIC-Based Barrier over Myrinet/GM.* IPDPS 2001.
- Chan, Heimlich, Purkayastha and van de Geijn. *Collective communication: theory, practice, and
  experience.* CCPE 19(13), 2007.
- Chen, Zhang, Zhang and Yuan. *Performance Evaluation of Allgather Algorithms on Terascale Linux
  Cluster with Fast Ethernet.* HPC Asia 2005.
- Collange, Defour, Graillat and Iakymchuk. *Numerical reproducibility for the parallel reduction on
  multi- and many-core architectures.* Parallel Computing 49, 2015.
- De Sensi, Bonato, Saam and Hoefler. *Swing: Short-cutting Rings for Higher Bandwidth Allreduce.*
  NSDI 2024.
- De Sensi, Pasqualoni, Piarulli, Bonato, Ba, Turisini, Domke and Hoefler. *Bine Trees: Enhancing
  Collective Operations by Optimizing Communication Locality.* SC 2025.
- Hensgen, Finkel and Manber. *Two algorithms for barrier synchronization.* IJPP 17(1), 1988.
- Hillis and Steele. *Data Parallel Algorithms.* CACM 29(12), 1986.
- Hoefler, Mehlan, Mietke and Rehm. *Fast Barrier Synchronization for InfiniBand.* IPDPS 2006.
- Jeaugey. *PAT: a new algorithm for all-gather and reduce-scatter operations at scale.*
  arXiv 2506.20252, 2025.
- Kandalla, Subramoni, Santhanaraman, Koop and Panda. *Designing Multi-leader-based Allgather
  Algorithms for Multi-core Clusters.* IPDPS Workshops 2009.
- Kielmann, Hofman, Bal, Plaat and Bhoedjang. *MagPIe: MPI's Collective Communication Operations for
  Clustered Wide Area Systems.* PPoPP 1999.
- Kini. *Efficient Collective Communication using RDMA and Multicast Operations for
  InfiniBand-Based Clusters.* MSc thesis, Ohio State University, 2003.
- Kumar and Kalé. *Scaling All-to-All Multicast on Fat-tree Networks.* ICPADS 2004.
- Message Passing Interface Forum. *MPI: A Message-Passing Interface Standard, version 3.1.* 2015.
- Moody, Fernandez, Petrini and Panda. *Scalable NIC-based Reduction on Large-scale Clusters.*
  SC 2003.
- Patarasuk and Yuan. *Bandwidth optimal all-reduce algorithms for clusters of workstations.*
  JPDC 69(2), 2009.
- Petrini, Fernandez, Frachtenberg and Coll. *Scalable Collective Communication on the ASCI Q
  Machine.* Hot Interconnects 2003.
- Pjesivac-Grbovic, Angskun, Bosilca, Fagg, Gabriel and Dongarra. *Performance analysis of MPI
  collective operations.* Cluster Computing 10(2), 2007.
- Rabenseifner. *Optimization of Collective Reduction Operations.* ICCS 2004.
- Sanders and Träff. *Parallel Prefix (Scan) Algorithms for MPI.* EuroPVM/MPI 2006.
- Ruefenacht, Bull and Booth. *Generalisation of recursive doubling for AllReduce: Now with
  simulation.* Parallel Computing 69, 2017.
- Sanders, Speck and Träff. *Two-tree algorithms for full bandwidth broadcast, reduction and scan.*
  Parallel Computing 35(12), 2009.
- Thakur, Rabenseifner and Gropp. *Optimization of Collective Communication Operations in
  MPICH.* IJHPCA 19(1), 2005.
- Träff. *Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast,
  All-Broadcast, Reduction and All-Reduction.* arXiv 2407.18004, 2024 (2024a).
- Träff. *Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms.* arXiv 2410.14234, 2024
  (2024b).
- Träff, Gropp and Thakur. *Self-Consistent MPI Performance Guidelines.* IEEE TPDS 21(5), 2010.
- Yu, Buntinas and Panda. *Scalable, High-Performance NIC-Based All-to-All Broadcast over
  Myrinet/GM.* Cluster 2004.
)";

std::string parameter_line(const ParameterSpec& spec) {
  if (!spec.names.empty() || spec.low == kUsual) {
    return fmt::format("- Parameter `{}`, {}; default {}: {}.\n", spec.name, print_choices(spec),
                       print_value(spec, spec.fallback), spec.help);
  }
  const std::string high = spec.high == 0 ? "P" : fmt::format("{}", spec.high);
  return fmt::format("- Parameter `{}`, {} to {}, default {}: {}.\n", spec.name, spec.low, high,
                     spec.fallback, spec.help);
}

std::string section(const Algorithm& row) {
  std::string text = fmt::format("\n### {}\n\n", row.name);
  text += fmt::format("- Idea: {}.\n", row.idea);
  text += fmt::format("- Steps: {}. Bytes: {}.\n", row.steps, row.bytes);
  text += fmt::format("- Good where: {}.\n", row.wins);
  if (!row.only.empty()) text += fmt::format("- Only: {}.\n", row.only);
  if (schedule::is_reduction(row.collective)) {
    text += fmt::format("- Order: {}.\n", row.keeps_order ? "kept" : "not kept");
  }
  if (row.sums_exactly) text += "- Sums: exact, rounded once.\n";
  if (!row.unequal_blocks) text += "- Blocks: of one length only.\n";
  if (row.local_counts) text += "- Counts: a rank needs its local counts only.\n";
  for (const ParameterSpec& spec : row.parameters) text += parameter_line(spec);
  text += fmt::format("- Source: {}.\n", row.source);
  return text;
}

}  // namespace

std::string markdown() {
  std::string text(kHead);
  for (int i = 0; i < schedule::kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    text += fmt::format("\n## {}\n", schedule::collective_name(collective));
    for (const Algorithm& row : table()) {
      if (row.collective == collective) text += section(row);
    }
  }
  text += kSources;
  return text;
}

}  // namespace unisono::algorithm

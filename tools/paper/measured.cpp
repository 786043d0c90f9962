// SPDX-License-Identifier: BSD-3-Clause
// The measured part of each paper's report: which stored figure stands beside which published one,
// and how far they can be compared. Nothing is measured here. One thread at a time.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "paper/claim.hpp"

namespace unisono::tools {
namespace {

constexpr const char* kTrimmedMean = "/trimmed_mean_us";
constexpr const char* kTrimmedDeviation = "/trimmed_deviation_us";
constexpr const char* kCallerTime = "/cpu_us";
constexpr const char* kWaitingTime = "/processor_us";
constexpr int kAllHosts[] = {4, 8, 16};
constexpr int kDistributionHosts[] = {4, 8};
constexpr int kConsistencyHosts[] = {4, 8, 16};

// Collects the rows of one paper. The first figure that a file lacks is the part's error.
class Part {
 public:
  explicit Part(Inputs& inputs) : inputs_(inputs) {}

  double published(const std::string& place) { return inputs_.published().at(place); }
  // 1 after an error.
  double at(const MeasurementFile& file, const nlohmann::json& row, const std::string& place) {
    if (error_.ok()) error_ = note(file);
    if (!error_.ok()) return 1;
    const base::Result<double> number = inputs_.measurements().at(file, row, place);
    if (number.ok()) return *number;
    error_ = number.error();
    return 1;
  }
  void add(MeasuredRow row) { part_.rows.push_back(std::move(row)); }

  base::Result<MeasuredPart> finish(std::string without) {
    UNISONO_TRY(error_);
    part_.without = std::move(without);
    return std::move(part_);
  }

 private:
  base::Status note(const MeasurementFile& file) {
    for (const MeasurementSource& source : part_.sources) {
      if (source.file == file.name) return base::success();
    }
    UNISONO_ASSIGN(MeasurementSource source, inputs_.measurements().source(file));
    part_.sources.push_back(std::move(source));
    return base::success();
  }

  Inputs& inputs_;
  MeasuredPart part_;
  base::Status error_ = base::success();
};

// A row of bench/nic/compare.py with one rank on each host.
nlohmann::json nic_row(std::string_view collective, int hosts, std::string_view name) {
  return {{"collective", collective}, {"hosts", hosts}, {"per_host", 1}, {"name", name}};
}

// A row of bench/nic/consistency.py; beside busy loops or undisturbed.
nlohmann::json consistency_row(int hosts, std::string_view name, bool busy) {
  nlohmann::json row = nic_row("allreduce", hosts, name);
  row["hogs"] = busy;
  return row;
}

nlohmann::json waiting_row(std::string_view collective, int bytes, int hosts,
                           std::string_view name) {
  return {{"collective", collective}, {"bytes", bytes}, {"hosts", hosts}, {"name", name}};
}

// A row of bench/peers/compare.py with one rank on each host; calls in a row.
nlohmann::json peers_row(std::string_view collective, int size, int hosts) {
  return {{"collective", collective},
          {"size", size},
          {"hosts", hosts},
          {"ranks", hosts},
          {"method", "loop"}};
}

// How many times as large `name`'s figure is as that of `base`.
double times(Part& part, const MeasurementFile& file, std::string_view collective, int hosts,
             std::string_view name, std::string_view base, const char* place = kTrimmedMean) {
  return part.at(file, nic_row(collective, hosts, name), place) /
         part.at(file, nic_row(collective, hosts, base), place);
}

void add_improvements(Part& part) {
  const std::string consistency = "/nic-reduce/consistency_900_nodes_float64_sum_us/";
  const double by_processes =
      part.published(consistency + "host/mean") / part.published(consistency + "nic/mean");
  const double over_mpi =
      1 + part.published("/nic-reduce/latency_us/3/improvement_over_mpi_percent") / 100;
  for (const int hosts : kAllHosts) {
    part.add(
        {fmt::format("{} hosts, from the last call: processes over the NIC path", hosts), "x",
         by_processes, times(part, kLastInLastOut, "allreduce", hosts, "udp", "nic"),
         "the factor only: an allreduce here, a reduction there, and pauses instead of barriers"});
  }
  for (const int hosts : kAllHosts) {
    part.add({fmt::format("{} hosts, calls in a row: processes over the NIC path", hosts), "x",
              by_processes, times(part, kNicPath, "allreduce", hosts, "udp", "nic"),
              "the factor only; here no barrier separates the calls"});
  }
  for (const int hosts : kAllHosts) {
    part.add({fmt::format("{} hosts, calls in a row: Open MPI 5.0 over the NIC path", hosts), "x",
              over_mpi, times(part, kNicPath, "allreduce", hosts, "openmpi50", "nic"),
              "hardly: that MPI used the same fast network, this one uses TCP"});
  }
}

void add_consistency(Part& part) {
  const std::string place = "/nic-reduce/consistency_900_nodes_float64_sum_us/";
  const std::string near[] = {"host_share_within_20us_percent", "nic_share_within_4us_percent"};
  for (const int hosts : kDistributionHosts) {
    for (const bool nic : {false, true}) {
      const std::string published = place + (nic ? "nic/" : "host/");
      const std::string way = nic ? "in the NIC path" : "by processes";
      const nlohmann::json row = nic_row("allreduce", hosts, nic ? "nic" : "udp");
      part.add({fmt::format("{} hosts, {}: standard deviation over mean", hosts, way), "%",
                100 * part.published(published + "stddev") / part.published(published + "mean"),
                100 * part.at(kDistribution, row, kTrimmedDeviation) /
                    part.at(kDistribution, row, kTrimmedMean),
                nic ? "no: there a NIC's own processor worked, here the hosts' cores do"
                    : "the share only; on shared cores ranks also wait for their turns"});
      part.add({fmt::format("{} hosts, {}: share of calls near the mean", hosts, way), "%",
                part.published(place + near[nic]), part.at(kDistribution, row, "/near_percent"),
                fmt::format("hardly: within {} us of the mean there, within 10 % of it here",
                            nic ? 4 : 20)});
    }
    part.add({fmt::format("{} hosts: deviation by processes over that in the NIC path", hosts), "x",
              part.published(place + "host/stddev") / part.published(place + "nic/stddev"),
              times(part, kDistribution, "allreduce", hosts, "udp", "nic", kTrimmedDeviation),
              "the direction only: here the same cores do both"});
  }
}

// Both ways in one run.
void add_disturbed_consistency(Part& part) {
  const std::string place = "/nic-reduce/consistency_900_nodes_float64_sum_us/";
  for (const int hosts : kConsistencyHosts) {
    for (const bool busy : {false, true}) {
      const std::string where =
          fmt::format("{} hosts, {}", hosts, busy ? "beside busy loops" : "beside nothing");
      const auto figure = [&](std::string_view name, const char* figure_place) {
        return part.at(kConsistency, consistency_row(hosts, name, busy), figure_place);
      };
      for (const auto& [figure_place, what] :
           {std::pair(kTrimmedMean, "mean"), std::pair(kTrimmedDeviation, "deviation")}) {
        const std::string in_paper = what == std::string_view("mean") ? "mean" : "stddev";
        part.add(
            {fmt::format("{}: {} by processes over that in the NIC path", where, what), "x",
             part.published(place + "host/" + in_paper) / part.published(place + "nic/" + in_paper),
             figure("udp", figure_place) / figure("nic", figure_place),
             "the direction only: here the same cores do both"});
      }
    }
  }
}

// Neither number is in a paper: both ways stand beside each other.
void add_processor_time_in_a_row(Part& part) {
  for (const int hosts : kDistributionHosts) {
    for (const bool nic : {false, true}) {
      part.add(
          {fmt::format("{} hosts, calls in a row, {}: processor time of a call", hosts,
                       nic ? "in the NIC path" : "by processes"),
           "us",
           {},
           part.at(kDistribution, nic_row("allreduce", hosts, nic ? "nic" : "udp"), kCallerTime),
           "with each other: the calling thread's time, in it packets that its calls handle"});
    }
  }
}

void add_waiting_times(Part& part, std::string_view collective, int bytes) {
  for (const int hosts : kAllHosts) {
    for (const bool nic : {false, true}) {
      part.add({fmt::format("{} hosts, {} of {} bytes, {}: processor time of a rank that waits 5 "
                            "ms",
                            hosts, collective, bytes, nic ? "in the NIC path" : "by processes"),
                "us",
                {},
                part.at(kProcessorTime, waiting_row(collective, bytes, hosts, nic ? "nic" : "udp"),
                        kWaitingTime),
                "with each other: mostly the time for which a rank polls before it sleeps"});
    }
  }
}

}  // namespace

base::Result<MeasuredPart> measured_nic_reduce(Inputs& inputs) {
  Part part(inputs);
  add_improvements(part);
  add_consistency(part);
  add_disturbed_consistency(part);
  add_processor_time_in_a_row(part);
  add_waiting_times(part, "allreduce", 8);
  return part.finish(
      "The latencies on 900 nodes, the best degrees and the split vectors have no measured "
      "counterpart. The machine's two cores are too few for them.");
}

base::Result<MeasuredPart> measured_fat_tree(Inputs& inputs) {
  return Part(inputs).finish(
      "No figure has a measured counterpart. One bridge joins all hosts, so there is no tree of "
      "switches whose links messages could share.");
}

base::Result<MeasuredPart> measured_nic_allgather(Inputs& inputs) {
  Part part(inputs);
  add_waiting_times(part, "allgather", 8);
  add_waiting_times(part, "allgather", 1400);
  return part.finish(
      "The two factors have no measured counterpart: the stored measurements of allgathers in the "
      "NIC path are of processor time, not of latency.");
}

base::Result<MeasuredPart> measured_asci_q(Inputs& inputs) {
  Part part(inputs);
  const double published = part.published("/asci-q/barrier_us_1024_nodes/software_tree") /
                           part.published("/asci-q/barrier_us_1024_nodes/hardware");
  for (const int hosts : kAllHosts) {
    part.add({fmt::format("barrier, {} hosts: processes with UDP and multicast over the NIC path",
                          hosts),
              "x", published, times(part, kNicPath, "barrier", hosts, "udp", "nic"),
              "hardly: switches and NICs combine there, programs in the kernel do here"});
    part.add({fmt::format("barrier, {} hosts: a tree on TCP over the NIC path", hosts), "x",
              published, times(part, kNicPath, "barrier", hosts, "tcp", "nic"),
              "hardly: a tree in both, but here of processes that sleep in the kernel"});
  }
  return part.finish(
      "The bandwidths and the allreduce of 4096 processes have no measured counterpart: the hosts "
      "share one memory and two cores.");
}

base::Result<MeasuredPart> measured_rdma_mcast(Inputs& inputs) {
  Part part(inputs);
  const std::string barrier = "/rdma-mcast/barrier_improvement/";
  const std::string mpi = "the factor only: multicast in both, but MPI uses TCP here";
  part.add({"barrier, 8 hosts: Open MPI 5.0 over multicast", "x",
            part.published(barrier + "all_sizes_cluster1_rgm"),
            times(part, kNicPath, "barrier", 8, "openmpi50", "udp"), mpi});
  part.add({"barrier, 16 hosts: Open MPI 5.0 over multicast", "x",
            part.published(barrier + "powers_of_two_cluster2_rgm_16"),
            times(part, kNicPath, "barrier", 16, "openmpi50", "udp"), mpi});
  const char* ratio = "/ratios/openmpi50";
  part.add({"allreduce, 8 hosts, 1024 bytes: Open MPI 5.0 over multicast", "x",
            part.published("/rdma-mcast/allreduce/rgm_over_mpi_gb_256_ints_cluster1"),
            part.at(kHosts, peers_row("allreduce", 1024, 8), ratio), mpi});
  for (const int hosts : {4, 8}) {
    for (const int bytes : {8, 1024}) {
      const nlohmann::json row = peers_row("broadcast", bytes, hosts);
      part.add({fmt::format("broadcast, {} hosts, {} bytes: Open MPI's messages over one multicast",
                            hosts, bytes),
                "x",
                {},
                part.at(kHosts, row, ratio),
                "the thesis has no figure for it"});
      part.add({fmt::format("broadcast, {} hosts, {} bytes: Open MPI's processor time over ours",
                            hosts, bytes),
                "x",
                {},
                part.at(kHosts, row, "/cpu_us/openmpi50") / part.at(kHosts, row, "/cpu_us/unisono"),
                "the thesis has no figure for it"});
    }
  }
  return part.finish(
      "The factors of RDS and RPE, the fan-in and the allreduce of 6.4 us have no measured "
      "counterpart: the machine has no NIC with RDMA.");
}

}  // namespace unisono::tools

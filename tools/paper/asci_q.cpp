// SPDX-License-Identifier: BSD-3-Clause
// Petrini et al., HotI 2003: barrier, broadcast and allreduce on 1024 nodes of ASCI Q with four
// processes each. The paper has no costs of messages. They come from two other papers on the same
// network, Elan3: nic-reduce for messages between NICs and between processes, fat-tree for the
// time of packets over the distance.
#include <fmt/format.h>

#include <vector>

#include "paper/claim.hpp"
#include "paper/simulate.hpp"

namespace unisono::tools {
namespace {

constexpr int kAsciNodes = 1024, kProcessesPerNode = 4;
constexpr int kAsciDegree = 4;  // the tree of the library on this network (nic-reduce, section 6.1)
constexpr double kAsciTolerancePercent = 25;

model::PathParameters* find(model::Machine& machine, model::Level level) {
  for (model::PathParameters& path : machine.paths) {
    if (path.level == level) return &path;
  }
  return nullptr;
}

// The NIC of the root starts. A test-and-set goes to all nodes through the top of the tree. Its
// answers come back combined, and a token releases all.
double hardware_barrier_us(const model::Machine& machine, double start_up_us) {
  constexpr int kPasses = 3;
  const int switches = 2 * machine.tree->levels - 1;
  return start_up_us + kPasses * switches * machine.tree->switch_delay.ns() / 1e3;
}

base::Result<double> software_barrier_us(const model::Machine& machine) {
  Operation operation;
  operation.shape = {schedule::Collective::barrier, kAsciNodes};
  operation.algorithm = "gather-broadcast";
  operation.parameters = {{kAsciDegree, 0}};
  operation.work = {model::Engine::nic, arith::Type::byte, std::nullopt, true};
  return latency_us(machine, operation);
}

base::Status add_barriers(Inputs& inputs, const model::Machine& machine, PaperReport& report) {
  model::Machine signals = machine;
  model::PathParameters* const nic = find(signals, model::Level::nic);
  UNISONO_ASSIGN(const double dear, software_barrier_us(signals));
  nic->gap.number = 0;
  UNISONO_ASSIGN(const double received, software_barrier_us(signals));
  for (model::Curve::Point& point : nic->reception.points) point.value.number = 0;
  UNISONO_ASSIGN(const double counted, software_barrier_us(signals));
  const std::string place = "/asci-q/barrier_us_1024_nodes/";
  report.claims.push_back(
      {"hardware barrier, 1024 nodes", "us", inputs.published().at(place + "hardware"),
       hardware_barrier_us(machine, start_up_ns(*nic, std::nullopt) / 1e3), kAsciTolerancePercent});
  report.claims.push_back({"software barrier, 1024 nodes", "us",
                           inputs.published().at(place + "software_tree"), counted,
                           kAsciTolerancePercent});
  report.parameters.push_back(
      fmt::format("assumed, since data messages disagree: the NIC counts signals as events, which "
                  "cost its processor nothing. If "
                  "it received each like a message, the software barrier would take {:.0f} us, and "
                  "{:.0f} us if it sent only one every L",
                  received, dear));
  return base::success();
}

// MB/s that the source of a hardware broadcast sees. The next packet leaves after the answers of
// all nodes. So each level of the tree adds a time, as it does between two nodes.
base::Status add_broadcast(Inputs& inputs, const model::Machine& machine, PaperReport& report) {
  constexpr double kMegabyte = 1 << 20;
  Published& published = inputs.published();
  const double bytes = published.at("/asci-q/elite/max_packet_bytes");
  const auto packet_us = [&](double rate) { return bytes / (rate * kMegabyte) * 1e6; };
  // Both directions count in these.
  const auto between_nodes_us = [&](const char* distance) {
    return packet_us(published.at(std::string("/fat-tree/prefix_send_drop_MBps/") + distance) / 2);
  };
  constexpr int kFirst = 2, kLast = 4;  // levels that the first and the last of them pass
  const double first = between_nodes_us("k_up_to_16"), last = between_nodes_us("k_above_64");
  const double level = (last - first) / (kLast - kFirst);
  const double memory = packet_us(published.at("/fat-tree/link/one_way_main_memory_MBps"));
  const double packet = memory + level * (machine.tree->levels - kFirst);
  const double rate = bytes / packet / kMegabyte * 1e6;
  const char* const why =
      "all processes copy a part of the message before the next one may come, and the paper does "
      "not say how long a part is";
  const std::string place = "/asci-q/broadcast_MBps_per_node_1024_nodes/";
  report.claims.push_back({"broadcast at the source, 1024 nodes", "MB/s",
                           published.at(place + "at_source"), rate, kAsciTolerancePercent, why});
  report.claims.push_back({"broadcast, all nodes together", "GB/s",
                           published.at(place + "aggregate_GBps"), rate * kAsciNodes / 1e3,
                           kAsciTolerancePercent, why});
  return base::success();
}

// The library's allreduce: up a tree of processes, whose processors receive each message, then a
// hardware broadcast.
base::Result<double> allreduce_us(model::Machine machine, int nodes, int per_node,
                                  double reception_us) {
  machine.cores_per_host = per_node;
  for (model::Curve::Point& point : find(machine, model::Level::hosts)->reception.points) {
    point.value = {reception_us, 0, model::Unit::us, model::Origin::assumed, "fitted"};
  }
  std::vector<int> hosts;
  for (int rank = 0; rank < nodes * per_node; ++rank) hosts.push_back(rank / per_node);
  Operation operation;
  operation.shape = {schedule::Collective::allreduce, nodes * per_node, 0, 1};
  operation.shape.hosts = topology::HostMap::of_labels(hosts);
  operation.algorithm = "gather-release";
  operation.parameters = {{kAsciDegree - 1, 0}};
  operation.work = {model::Engine::any, arith::Type::float64, arith::Operator::sum, true};
  return latency_us(machine, operation);
}

base::Status add_allreduce(Inputs& inputs, const model::Machine& machine, PaperReport& report) {
  constexpr int kAlcNodes = 906, kAlcProcessesPerNode = 2;
  const std::string alc = "/nic-reduce/latency_us/2/";
  const double target = inputs.published().at(alc + "nic") *
                        (1 + inputs.published().at(alc + "improvement_over_mpi_percent") / 100);
  UNISONO_ASSIGN(const double reception, fit(0, target, target, [&](double value) {
                   return allreduce_us(machine, kAlcNodes, kAlcProcessesPerNode, value);
                 }));
  UNISONO_ASSIGN(const double simulated,
                 allreduce_us(machine, kAsciNodes, kProcessesPerNode, reception));
  report.claims.push_back({"allreduce, 4096 processes", "us",
                           inputs.published().at("/asci-q/allreduce_us_largest/value"), simulated,
                           kAsciTolerancePercent});
  report.parameters.push_back(
      fmt::format("fitted: a process takes {:.1f} us to receive a message, system noise included. "
                  "Chosen by the {:.0f} us of the same library with 1812 processes on ALC "
                  "(nic-reduce, section 6.3)",
                  reception, target));
  report.parameters.push_back("assumed: a vector of one element, whose length is not published");
  return base::success();
}

}  // namespace

base::Result<PaperReport> report_asci_q(Inputs& inputs) {
  UNISONO_ASSIGN(model::Machine machine, inputs.machine("asci-q"));
  if (!machine.tree || find(machine, model::Level::nic) == nullptr ||
      find(machine, model::Level::hosts) == nullptr) {
    return base::Error{base::Code::argument, "asci-q.json lacks tree, or paths of hosts and nic"};
  }
  PaperReport report{"asci-q",
                     "Petrini et al.: Scalable Collective Communication on the ASCI Q Machine",
                     {},
                     {},
                     {}};
  report.parameters = {
      "published: five levels of switches, 35 ns each, packets of 384 bytes (sections 2 to 5)",
      "published elsewhere: L and C of the same NIC (nic-reduce, table 2)",
      "published elsewhere: bandwidth over the distance, from NIC and main memory (fat-tree, "
      "sections 2 and 4.1)"};
  UNISONO_TRY(add_barriers(inputs, machine, report));
  UNISONO_TRY(add_broadcast(inputs, machine, report));
  UNISONO_TRY(add_allreduce(inputs, machine, report));
  return report;
}

}  // namespace unisono::tools

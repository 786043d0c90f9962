// SPDX-License-Identifier: BSD-3-Clause
// Yu, Buntinas and Panda, Cluster 2004: allgathers by processes and by NICs on 16 nodes with
// Myrinet. The paper publishes factors, no costs. The bus, the link and the packets are known by
// their nominal figures; the rest is assumed in the machine file, and nothing is fitted.
#include <algorithm>
#include <string>

#include "paper/claim.hpp"
#include "paper/simulate.hpp"

namespace unisono::tools {
namespace {

constexpr int kAllgatherNodes = 16;
constexpr int kSmall = 4, kLarge = 4096;  // bytes; section 6.2, one packet each
constexpr double kAllgatherTolerancePercent = 25;

struct Times {
  double host = 0, doubling = 0, broadcasts = 0;
};

const model::PathParameters& nic_path(const model::Machine& machine, int bytes) {
  return model::remote_path(machine, model::Engine::nic, bytes);
}

// NICs forward a block before they write it to their host. The bus of the host carries the own
// block, then each other one: it ends after the network, or after all of these.
double with_bus(double network_us, const model::Machine& machine, int bytes) {
  const model::PathParameters& path = nic_path(machine, bytes);
  const double block = path.copy_per_byte.ns() * bytes / 1e3;
  const double first = (path.latency.ns() + path.overhead.ns() + path.gap_per_byte.ns() * bytes +
                        path.reception.ns(bytes) + start_up_ns(path, std::nullopt)) /
                       1e3;
  return std::max(network_us + block, first + kAllgatherNodes * block);
}

base::Result<double> time_us(const model::Machine& machine, model::Engine engine,
                             std::string_view name, int bytes) {
  Operation operation;
  operation.shape = {schedule::Collective::allgather, kAllgatherNodes, 0, bytes};
  operation.algorithm = name;
  operation.work = {engine, arith::Type::byte, std::nullopt, true};
  return latency_us(machine, operation);
}

base::Result<Times> times(const model::Machine& machine, int bytes) {
  Times result;
  UNISONO_ASSIGN(result.host, time_us(machine, model::Engine::any, "recursive-doubling", bytes));
  UNISONO_ASSIGN(result.doubling,
                 time_us(machine, model::Engine::nic, "recursive-doubling", bytes));
  UNISONO_ASSIGN(result.broadcasts,
                 time_us(machine, model::Engine::nic, "concurrent-broadcast", bytes));
  result.doubling = with_bus(result.doubling, machine, bytes);
  result.broadcasts = with_bus(result.broadcasts, machine, bytes);
  return result;
}

}  // namespace

base::Result<PaperReport> report_nic_allgather(Inputs& inputs) {
  UNISONO_ASSIGN(const model::Machine machine, inputs.machine("osu-myrinet"));
  UNISONO_ASSIGN(const Times small, times(machine, kSmall));
  UNISONO_ASSIGN(const Times large, times(machine, kLarge));
  PaperReport report{
      "nic-allgather", "Yu et al.: NIC-Based All-to-All Broadcast over Myrinet/GM", {}, {}, {}};
  report.parameters = {
      "published: a bus of 32 bits and 33 MHz, packets of 4 KiB (sections 4 to 6)",
      "assumed: costs of a message by GM, by a process and by a NIC (machines/osu-myrinet.json)",
      "fitted: nothing"};
  const std::string place = "/nic-allgather/improvement_over_host/";
  report.claims.push_back(
      {"16 nodes, 4 KiB: concurrent broadcasting over the host", "x",
       inputs.published().at(place + "concurrent_broadcast_large"), large.host / large.broadcasts,
       kAllgatherTolerancePercent,
       "the bus carries 30 blocks for the host and 16 for the NIC. The rest is in costs of GM that "
       "the paper does not publish"});
  report.claims.push_back({"16 nodes, 4 bytes: recursive doubling over the host", "x",
                           inputs.published().at(place + "recursive_doubling_small"),
                           small.host / small.doubling, kAllgatherTolerancePercent});
  report.orders = {
      {"4 bytes: NIC doubling before the host", 0, small.doubling < small.host},
      {"4 bytes: the host before NIC broadcasting", 0, small.host < small.broadcasts},
      {"4 KiB: NIC broadcasting before NIC doubling", 0, large.broadcasts < large.doubling},
      {"4 KiB: NIC doubling before the host", 0, large.doubling < large.host}};
  return report;
}

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "nic/daemon/reduce_as.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "algorithm/algorithm.hpp"
#include "base/clock.hpp"
#include "nic/daemon/daemon_hosts.hpp"
#include "nic/lowering/lower.hpp"
#include "nic/port/port.hpp"

namespace unisono::nic::test {

int reduce_as(const std::string& path, int rank) {
  auto client = ServiceClient::connect(path);
  if (!client.ok()) return 1;
  schedule::Shape shape;
  shape.collective = schedule::Collective::allreduce;
  shape.ranks = kHosts;
  shape.count = 1;
  const auto* tree = algorithm::find(shape.collective, "gather-release");
  const auto schedule = algorithm::build(*tree, shape, {{1}}, rank);
  std::vector<unisono_nic_address> addresses;
  for (int i = 0; i < kHosts; ++i) {
    addresses.push_back(host_address(i));
    addresses.back().port = htons(kServicePort);
  }
  GroupAddresses group;
  group.id = kReduceId;
  group.key = {1, 2};
  group.ranks = addresses;
  group.multicast = multicast_address(htonl(0xEFFF0007), htons(kServicePort));
  const auto row = make_row(*lower(*schedule), group);
  const auto member = (*client)->join(*row);
  if (!member.ok()) return 2;
  const auto port = Port::open((*member)->row, (*member)->mapping.memory());
  if (!port.ok()) return 3;
  // Packets to a host without the group are lost, so all must have joined.
  const auto mark = [&](int of) {
    return path.substr(0, path.rfind('/')) + "/ready" + std::to_string(of);
  };
  close(open(mark(rank).c_str(), O_CREAT | O_WRONLY, 0644));
  for (int other = 0; other < kHosts; ++other) {
    while (access(mark(other).c_str(), F_OK) != 0) std::this_thread::yield();
  }
  for (std::uint64_t operation = 0; operation < kReductions; ++operation) {
    const std::uint64_t given = operation * 10 + static_cast<std::uint64_t>(rank);
    if (!(*port)->post(UNISONO_NIC_SUM_INT64, std::span(&given, 1)).ok()) return 4;
    while (!(*port)->is_done(operation)) {
      if (!(*port)->repair(base::now_ns(), 20 * base::kMillisecond).ok()) return 7;
      std::this_thread::yield();
    }
    if ((*port)->result(operation)[0] != operation * 20 + 1) return 5;
  }
  return (*client)->leave((*member)->row.index).ok() ? 0 : 6;
}

}  // namespace unisono::nic::test

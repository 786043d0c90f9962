// SPDX-License-Identifier: BSD-3-Clause
// A fixture: jobs with one tree and a rank on each of many hosts, so that the tree has inner nodes.
// A suite has kMany hosts.
#pragma once

#include <set>

#include "nic/job/nic_job.hpp"

namespace unisono::harness {

template <int Many>
class NicManyHosts : public NicJob {
 protected:
  static constexpr int kMany = Many;

  static void SetUpTestSuite() { host_count_ = kMany; }
  static void TearDownTestSuite() {
    NicJob::TearDownTestSuite();
    host_count_ = kHosts;
  }

  void use(int hosts, const Environment& environment) {
    host_of_.clear();
    for (int host = 0; host < hosts; ++host) host_of_.push_back(host);
    environment_ = environment;
    for (const char* limit : {"UNISONO_DETECT_TIMEOUT", "UNISONO_DETECT_TIMEOUT_HOSTS"}) {
      environment_.emplace_back(limit, "300s");  // processes are stopped
    }
    environment_.emplace_back("UNISONO_NIC_SPLITS", "0");  // one tree, whose root is rank 0
  }
  // Hosts that have children and a parent.
  std::set<int> inner_nodes() const {
    std::set<int> inner;
    for (const int host : host_of_) {
      for (const nic::GroupLine& line : status(host).own_groups) {
        if (line.rank != 0 && line.children > 0) inner.insert(host);
      }
    }
    return inner;
  }
};

}  // namespace unisono::harness

// SPDX-License-Identifier: BSD-3-Clause
// Whether this process may load the NIC program. It is tried once, before the first test: the
// kernel verifies the program at each load, which takes as long as many tests. One thread.
#pragma once

#include "base/result.hpp"
#include "nic/loader/device.hpp"

namespace unisono::nic::test {

// Code::unsupported: tests are to be skipped.
inline const base::Status& may_load() {
  static const base::Status tried = [] {
    const auto loaded = load_device({});
    return loaded.ok() ? base::success() : base::Status(loaded.error());
  }();
  return tried;
}

}  // namespace unisono::nic::test

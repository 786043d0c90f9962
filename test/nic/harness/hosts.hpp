// SPDX-License-Identifier: BSD-3-Clause
// Hosts for tests: network namespaces joined by a bridge in one of their own, each with an
// interface u0. The namespaces have no names; they exist as long as this object's descriptors, so
// that they vanish with the process however it ends. Host i is 10.0.0.(i + 1), as in frames.hpp.
// In the virtual machine their interfaces are the machine's own (harness/machine_interfaces.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "nic/loader/device.hpp"

namespace unisono::nic::test {

class Hosts {
 public:
  // Code::unsupported if this process may not make namespaces or `ip` is missing.
  static base::Result<std::unique_ptr<Hosts>> make(int count);

  int count() const { return static_cast<int>(hosts_.size()); }
  // From here on the calling thread is on that host. It should end there.
  void enter(int host) const;
  // One thread per host runs the body, all at once; returns when all have.
  void run(const std::function<void(int host)>& body) const;

 private:
  Hosts() = default;
  base::Status start(int count);
  base::Status start_links(int count);

  base::Descriptor switch_;
  std::vector<base::Descriptor> hosts_;
};

// Whether the drivers of the hosts' interfaces run the program.
bool has_native_hosts();
// They put the program on a host's interface, on such hosts in native mode.
DeviceOptions host_options();

}  // namespace unisono::nic::test

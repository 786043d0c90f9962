// SPDX-License-Identifier: BSD-3-Clause
// Keeper of a set of test hosts: process 1 of a pid namespace that all hosts of the set share, in a
// network namespace that has their switches. When it ends, however it ends, the kernel kills every
// process of the set, and with the last one its namespaces go with all links, switches and mounts
// in them. There is nothing to undo: nothing was ever made outside. It ends with its owner, if it
// has one.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"
#include "hosts/plan.hpp"
#include "hosts/registry.hpp"

namespace unisono::tools {

// Makes the hosts of a plan that check_plan() accepts and returns when they can be used. They stay
// until remove_hosts(), or until process `owner` ends if it is not 0. Needs root. The calling
// process must have no threads (it forks).
base::Result<HostsRecord> make_hosts(const HostsPlan& plan, pid_t owner);

}  // namespace unisono::tools

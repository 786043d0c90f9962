// SPDX-License-Identifier: BSD-3-Clause
// How ranks of several hosts find a rendezvous address that nobody has given: by the launcher's
// key-value store. Each rank publishes its host's addresses and a public key. Rank 0 listens at the
// local address from which most of those are reached, by the kernel's routes. It publishes that
// address and a random key for the job, sealed for each rank (key_exchange.hpp). Control path;
// blocks, with a deadline in every phase. Any thread.
#pragma once

#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/address.hpp"
#include "bootstrap/kvs/key_value_store.hpp"
#include "bootstrap/kvs/rendezvous_values.hpp"
#include "transport/ip/interfaces.hpp"
#include "transport/ip/network_settings.hpp"

namespace unisono::bootstrap {

struct RankOfJob {
  int rank = 0;
  int ranks = 1;
  std::string key;  // of the job, if the user has set one
};

struct ChosenRendezvous {
  Address address;
  std::string key;            // of the job: the user's, otherwise the random one
  base::Descriptor listener;  // rank 0: the socket that listens at the address; others: invalid
};

// Takes UNISONO_NETWORKS from `settings`. Errors for all ranks alike: of the store; argument
// (UNISONO_NETWORKS leaves no address); system. For this rank: state (another process has changed
// what is in the store).
base::Result<ChosenRendezvous> choose_rendezvous_address(KeyValueStore& store, const RankOfJob& own,
                                                         const base::Settings& settings);

// By rank 0 of a job on several hosts: the local address that the other hosts reach. `own`: of its
// host. Error: argument (there is none that UNISONO_NETWORKS allows).
base::Result<transport::IpAddress> choose_listening_address(
    const transport::NetworkSettings& network, std::span<const transport::LocalAddress> locals,
    const HostValue& own, std::span<const HostValue> others);

}  // namespace unisono::bootstrap

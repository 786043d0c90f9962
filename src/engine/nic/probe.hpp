// SPDX-License-Identifier: BSD-3-Clause
// What this host's daemon offers, asked without joining anything: so that a job knows at its start
// which hosts have a NIC path. Where no daemon serves, that is one system call. Any thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "engine/nic/offer.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::engine {

// `path`: of the daemon's socket; `wishes`: this rank's. The error says why there is none.
base::Result<NicOffer> probe_offer(const std::string& path, const NicWishes& wishes);

// What a daemon of this host that serves so makes possible.
NicOffer offer_of(const nic::Served& served, const NicWishes& wishes);

}  // namespace unisono::engine

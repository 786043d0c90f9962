// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a job find a rendezvous over an exchange that the caller provides. Ranks on one
// host take an abstract Unix socket, where the kernel reports the user. Otherwise rank 0 chooses an
// address that the other hosts reach, and a random key for the job spreads from rank to rank,
// sealed for each receiver (kvs/key_exchange.hpp), in rounds whose number grows with the logarithm
// of the ranks. Control path; blocks in the caller's exchange only. Any thread.
#pragma once

#include "base/result.hpp"
#include "base/settings/settings.hpp"
#include "bootstrap/exchange/exchange_rounds.hpp"
#include "bootstrap/kvs/choose_rendezvous_address.hpp"

namespace unisono::bootstrap {

// Takes UNISONO_NETWORKS and UNISONO_JOB_KEY from `settings`; a rank whose settings are invalid
// passes their error, and all ranks return one. Errors: those of ExchangeRounds::gather(); argument
// (no address that the other hosts reach), system. With an error of this rank alone, the next round
// tells the others.
base::Result<ChosenRendezvous> choose_rendezvous_by_exchange(
    ExchangeRounds& rounds, const base::Result<base::Settings>& settings);

}  // namespace unisono::bootstrap

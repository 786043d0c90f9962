// SPDX-License-Identifier: BSD-3-Clause
// Where ranks of several hosts meet if nobody has said: they agree on it over the launcher's board.
// Each notes its host's addresses and a public key; rank 0 listens at its own address from which
// most of them are reached, by the kernel's routes, and notes that with a random key for the job,
// sealed for each rank (key_exchange.hpp). The key holds where the user has set none. Control path;
// blocks, with a deadline in every phase. Any thread.
#pragma once

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/settings.hpp"
#include "bootstrap/launchers/launcher.hpp"

namespace unisono::bootstrap {

// Fills in the address and, if there is none, the key. Gives what listens there, at rank 0; the
// others get an invalid descriptor. Takes UNISONO_START_TIMEOUT and UNISONO_NETWORKS. Errors, for
// all ranks alike: of the board; argument (UNISONO_NETWORKS leaves no address to meet at); system.
// For this rank: state (somebody has changed what is on the board).
base::Result<base::Descriptor> agree_on_place(JobDescription& job, const base::Settings& settings);

}  // namespace unisono::bootstrap

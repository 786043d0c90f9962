// SPDX-License-Identifier: BSD-3-Clause
// What each message of a rank costs in the library, from calls of many: one rank sends to several,
// receives from several, or sends many to one. Plain stores cost far less than the steps that make
// them. Main thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/fit.hpp"
#include "model/machine.hpp"
#include "schedule/shape.hpp"

namespace unisono::tools::tune {

// A call by one algorithm, as UNISONO_ALGORITHM names it.
struct MessageProbe {
  schedule::Collective collective = schedule::Collective::barrier;
  std::string algorithm;
  std::int64_t bytes = 8;  // of the vector, or of a block; a multiple of 8
};
// The probes for more ranks than cores leave out chains, whose times hang on the scheduler.
std::span<const MessageProbe> message_probes(bool oversubscribed);

struct MessageTime {
  MessageProbe probe;
  int ranks = 2;
  double ns = 0;
};

// The fit of an engine: o, r(0), and C + L. Where ranks help each other, it has the hand-over in
// place of C + L, as each rank needs a core once for both. With two ranks, one sends while the
// other receives, and times show only the greater one of o and r. Those of helping ranks show only
// their sum. In both cases o and r are taken as equal.
struct MessageCosts {
  model::Estimate start_up_and_latency;  // none of a helping engine
  model::Estimate hand_over;             // of a helping engine only
  model::Estimate overhead, reception;
  double deviation = 0;  // of the measured times from the prices
};

// `machine` gives the parameters that are not fitted. Errors: too few times.
base::Result<MessageCosts> fit_messages(const model::Machine& machine, model::Engine engine,
                                        int cores, std::span<const MessageTime> times);

// Within the host, for the engine only: its paths come before those of any engine. The hand-over is
// the machine's.
void set_message_costs(model::Machine& machine, model::Engine engine, const MessageCosts& costs,
                       const std::string& where);

}  // namespace unisono::tools::tune

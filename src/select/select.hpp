// SPDX-License-Identifier: BSD-3-Clause
// Choice of algorithm, parameters and engine for a call: the user's overrides, or else the cheapest
// candidate (candidates.hpp), or else the table of rules (rules.hpp). Pure: all ranks choose alike,
// since they have the same input. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/algorithm.hpp"
#include "arith/type.hpp"
#include "base/settings/settings.hpp"
#include "model/machine.hpp"
#include "nic/service/capabilities.hpp"
#include "select/buffers.hpp"
#include "select/engine_kind.hpp"
#include "select/override.hpp"

namespace unisono::select {

struct Priced;

// Facts that are the same at all ranks, besides the shape.
struct Circumstances {
  std::int64_t element_bytes = 1;
  bool oversubscribed = false;  // more ranks than cores
  int cores = 1;                // if all ranks are on one host: its cores
  // If all hosts are network namespaces or containers of one machine: its cores; 0: not known.
  int shared_cores = 0;
  bool multicast = false;         // a message to many is staged once
  bool staged_multicast = false;  // ... among the ranks of a host
  // A message from the first rank of a host to those of the others is one packet.
  bool leaders_multicast = false;
  bool streams = false;  // long messages between hosts go by streams, or by remote memory
  bool pull = false;     // ranks can read each other's memory
  // Bytes from which that is preferred to buffers; negative: as measured.
  std::int64_t single_copy_from = -1;
  std::int64_t receive_buffer_bytes = 0;  // of a rank's receive buffer; 0: no limit
  std::int64_t segment_bytes = 0;         // the most of a vector or block at a time; 0: no limit
  BuffersBySize buffers = {};
  const model::Machine* machine = nullptr;  // the costs; null: the default machine

  // The call: its built-in operator and type. A user's own are none here.
  std::optional<arith::Operator> op = {};
  std::optional<arith::Type> type = {};
  bool local_counts = false;  // ranks know the counts of their own blocks only
  bool is_plain = true;       // made by the user, with blocks of one length

  // The communicator.
  bool shared_receive_buffers = false;                        // ranks can do each other's steps
  base::EngineChoice engine = base::EngineChoice::automatic;  // UNISONO_ENGINE
  std::optional<nic::Preferences> nic = {};                   // it has a NIC path
  bool nic_multicasts = false;                                // ... with multicast between hosts
};

// The costs: its machine, or the default one.
const model::Machine& machine_of(const Circumstances& circumstances);

// The source of the choice.
enum class Origin {
  rule,       // the rule that holds
  price,      // the cheapest candidate on the machine
  override_,  // a rule of UNISONO_ALGORITHM
  learned     // measured calls, or a trial for them
};

struct Choice {
  const algorithm::Algorithm* algorithm = nullptr;
  algorithm::Parameters parameters;
  Origin origin = Origin::rule;
  std::string reason;                         // half a sentence for people
  std::vector<std::string> passed_over = {};  // overrides that do not fit this call, and why
  EngineKind engine = EngineKind::inline_;
  std::string_view engine_reason = {};  // the same, of static storage
  // The same; empty if there is no NIC path, or the call takes it.
  std::string why_not_nic = {};
  bool nic_asks = false;  // a barrier that takes the NIC path asks (select/nic/asking.hpp)
};

// The part of a call on which its choice by price depends within a communicator. The length is that
// of its class, and no rank is special where all share one host.
struct PricedCall {
  schedule::Collective collective = schedule::Collective::barrier;
  std::int64_t count = 0, element_bytes = 1;
  bool ordered = false;
  std::optional<arith::Operator> op = {};
  std::optional<arith::Type> type = {};

  auto operator<=>(const PricedCall&) const = default;
};
// Choices by price that the ranks of a communicator make together: one of them prices the
// candidates for all.
class SharedChoices {
 public:
  using MakePriced = std::function<std::optional<Priced>()>;

  virtual ~SharedChoices() = default;
  // The cheapest candidate, of the price its ns only: that of the rank which made the choice, or
  // else what make() finds. It may wait while another rank makes the choice.
  virtual std::optional<Priced> find_or_make(const PricedCall& call, const MakePriced& make) = 0;
};
// Choices by price of one communicator with its overrides. Owned by the caller; one thread.
struct KnownChoices {
  std::map<PricedCall, std::optional<Choice>> own;
  SharedChoices* shared = nullptr;  // outlives it; null: this rank makes all choices
};

// Always finds a legal one. The engine may still become inline, if long messages can be pulled. A
// choice by price takes milliseconds, so it is that of all lengths which share the first four
// binary digits. `known`: those that were made before, and are made here; null: none. The choice is
// the same with it and without.
Choice choose(const schedule::Shape& shape, const Circumstances& circumstances,
              const Overrides& overrides = {}, KnownChoices* known = nullptr);

// The same choice with another algorithm and other parameters, which are legal.
Choice choose_as(const Choice& choice, const algorithm::Algorithm& row,
                 const algorithm::Parameters& parameters, std::string reason);

// The choice of algorithm and parameters by rule or by price alone. The cheapest candidate is
// nullopt where no prices are computed: blocks differ in length, or there is one rank.
Choice choose_by_rule(const schedule::Shape& shape, const Circumstances& circumstances,
                      const Overrides& overrides = {});
std::optional<Choice> choose_by_price(const schedule::Shape& shape,
                                      const Circumstances& circumstances,
                                      const Overrides& overrides = {});
// Whether choose() takes the cheapest candidate for such a call: where, by the machine file, prices
// choose at least as well as rules do.
bool goes_by_price(const schedule::Shape& shape, const Circumstances& circumstances);

// Whether long messages should be read from their senders' memory, in one copy, instead of passing
// through buffers in parts.
bool prefers_single_copy(const schedule::Shape& shape, const Circumstances& circumstances);

// Bytes of the vector, or of a block on the average, as overrides and rules count them; nullopt
// where ranks know different counts.
std::optional<std::int64_t> common_bytes(const schedule::Shape& shape,
                                         const Circumstances& circumstances);

}  // namespace unisono::select

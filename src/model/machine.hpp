// SPDX-License-Identifier: BSD-3-Clause
// Machine: what messages and reductions cost on a machine, as values with their origin. A message
// of m bytes that a rank sends occupies it for o + m O; g + m G pass before its next one leaves;
// the message arrives L + m G after it left. Receiving it occupies the receiver for r(m), combining
// it with a vector for c(m), an operation begins with C. These are the parameters of LogGOPS, with
// those of Moody et al. (SC 2003): r, c, C. The alpha of Kumar and Kale (ICPADS 2004) is o; their
// beta is O + G. Values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arith/type.hpp"
#include "model/constants.hpp"

namespace unisono::model {

enum class Unit : std::uint8_t { ns, us, ms, s, ns_per_byte, mb_per_s, bytes, ranks, ratio };
enum class Origin : std::uint8_t { measured, published, assumed };

// A number as somebody wrote it, in his unit; `plus_minus` is half the width of its 95 % interval,
// in the same unit. `where` names the paper's place, the measurement, or the reason of an
// assumption.
struct Value {
  double number = 0;
  double plus_minus = 0;
  Unit unit = Unit::ns;
  Origin origin = Origin::assumed;
  std::string where;

  // Nanoseconds, or nanoseconds per byte. The value has to be a time.
  double ns() const;
  // Bytes or ranks.
  std::int64_t count() const;
  bool operator==(const Value&) const = default;
};

// A time by message size: linear between points. Below the first point it is that point's; beyond
// the last it goes on with the slope of the last two, which must not fall.
struct Curve {
  struct Point {
    std::int64_t bytes = 0;
    Value value;

    bool operator==(const Point&) const = default;
  };
  std::vector<Point> points;  // at least one; bytes ascend

  double ns(std::int64_t bytes) const;
  bool operator==(const Curve&) const = default;
};

// The cost for one operator and type; empty stands for any.
struct ReductionCost {
  std::optional<arith::Operator> op;
  std::optional<arith::Type> type;
  Curve curve;

  bool operator==(const ReductionCost&) const = default;
};

struct StartUp {
  std::optional<arith::Operator> op;
  Value value;

  bool operator==(const StartUp&) const = default;
};

// The medium of a message. `cache` and `memory` join ranks of a host, the other two hosts.
enum class Level : std::uint8_t { cache, memory, hosts, nic };
enum class Engine : std::uint8_t { any, inline_, helping, nic };

// The parameters of one level, as one engine uses it.
struct PathParameters {
  Level level = Level::memory;
  Engine engine = Engine::any;
  std::int64_t up_to_bytes = 0;          // for messages up to this size; 0: of any size
  Value latency;                         // L
  Value overhead;                        // o, of the sender
  Value overhead_per_byte;               // O
  Value gap;                             // g, between messages of one sender
  Value gap_per_byte;                    // G
  Curve reception;                       // r(M)
  std::vector<ReductionCost> reduction;  // c(M, operator, type)
  std::vector<StartUp> start_up;         // C(operator)
  Value copy_per_byte;                   // gamma, of local copies that combine messages
  // A multicast stages its message once, for delta a byte. Then it sends it with this per byte in
  // place of O + G: the beta of staged data. Both or neither.
  std::optional<Value> staged_per_byte;
  std::optional<Value> staging_per_byte;
  // Where the network copies: one send reaches all targets this long after it left.
  std::optional<Value> multicast_latency;
  // Between hosts: messages of at least so many bytes go faster by streams than by datagrams.
  std::optional<Value> streams_from;

  bool operator==(const PathParameters&) const = default;
};

// The network between hosts, a k-ary n-tree.
struct Tree {
  int arity = 0, levels = 0;
  Value link_per_byte;  // of one direction of a link
  Value switch_delay;

  bool operator==(const Tree&) const = default;
};

// Identifies the measured machine; a file that contains it also has a checksum.
struct Fingerprint {
  std::string machine, version, settings;

  bool operator==(const Fingerprint&) const = default;
};

// Calls of an MPI's collective with so many bytes in a block, both ends included. A vector that is
// no sequence of blocks is one block.
struct ByteRange {
  std::string collective;  // in small letters, as MPI spells it: "reduce_scatter_block"
  std::int64_t from_bytes = 0;
  std::int64_t up_to_bytes = 0;  // 0: any

  bool operator==(const ByteRange&) const = default;
};

// Where an MPI's own collectives were measured to be faster than Unisono's. It holds for
// communicators of so many ranks on so many hosts, and for no others.
struct HostMpi {
  std::string library;  // as it calls itself: "Open MPI v4.1.4"
  int ranks = 0, hosts = 0;
  std::vector<ByteRange> faster;

  bool operator==(const HostMpi&) const = default;
};

struct Machine {
  std::string name;
  std::string about;
  std::optional<Fingerprint> fingerprint;
  int hosts = 1;
  int cores_per_host = 1;
  // Where ranks outnumber cores: passing a core from rank to rank; and from a doorbell to the
  // sleeping rank's first step.
  std::optional<Value> hand_over;
  std::optional<Value> wake_up;
  std::optional<Value> hardware_barrier;
  // By how much prices deviate from measured times, as a ratio: 0.2 is 20 %. Without it, no choice
  // goes by price.
  std::optional<Value> price_error;
  std::optional<Tree> tree;
  std::array<std::optional<Value>, kConstantCount> constants;
  std::vector<PathParameters> paths;  // at least one
  std::vector<HostMpi> host_mpis;     // one for each library, ranks and hosts

  bool operator==(const Machine&) const = default;
};

// The measured ranges; nullptr: there are none.
const HostMpi* find_host_mpi(const Machine& machine, std::string_view library, int ranks,
                             int hosts);
// Takes the place of an older measurement.
void replace_host_mpi(Machine& machine, HostMpi measured);

// The machine's, or that of the default machine.
const Value& constant_of(const Machine& machine, Constant constant);

// The parameters of messages of `bytes`: the first path that fits, with the engine or with any;
// nullptr if the machine has none.
const PathParameters* find_path(const Machine& machine, Level level, Engine engine,
                                std::int64_t bytes);
// Local messages take `cache` if it exists and holds for their size. Otherwise they take `memory`,
// or else the machine's first path. The same holds for `nic`, then `hosts`. Never fails on a valid
// machine.
const PathParameters& local_path(const Machine& machine, Engine engine, std::int64_t bytes);
const PathParameters& remote_path(const Machine& machine, Engine engine, std::int64_t bytes);

// The least message between hosts that goes faster by streams; nullopt if the machine does not say.
std::optional<std::int64_t> streams_from_bytes(const Machine& machine);

// c of so many bytes. The entry is that of the operator and type, else of the operator, else of the
// type, else of any. 0 if there is none, and for no bytes.
double reduction_ns(const PathParameters& path, arith::Operator op, arith::Type type,
                    std::int64_t bytes);
// C, in the same way.
double start_up_ns(const PathParameters& path, std::optional<arith::Operator> op);

// Names as machine files spell them.
std::string_view unit_name(Unit unit);
std::string_view origin_name(Origin origin);
std::string_view level_name(Level level);
std::string_view engine_name(Engine engine);

}  // namespace unisono::model

// SPDX-License-Identifier: BSD-3-Clause
// The virtual network: puts travel through a queue with delays from a seed, and arrive reordered
// unless told otherwise. Time is a number that advance() moves; nothing sleeps. The same seed gives
// the same run, so a failing seed is a complete report. For one thread that drives all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "base/prng.hpp"
#include "transport/transport.hpp"

namespace unisono::transport {

struct VirtualOptions {
  std::uint64_t seed = 1;
  std::int64_t delay_min_ns = 100;
  std::int64_t delay_max_ns = 10'000;
  bool reorder = true;     // false: between two ranks, first sent is first delivered
  bool multicast = false;  // whether the network stages a message to many once
  bool pull = false;       // whether ranks may read each other's memory
};

class VirtualNetwork {
 public:
  VirtualNetwork(int ranks, const VirtualOptions& options);

  // The transport of one rank; the network outlives it.
  std::unique_ptr<Transport> attach(int rank);

  // Delivers the next message, moving time to its arrival; false if none is under way.
  bool advance();

  std::int64_t now_ns() const { return now_ns_; }
  std::int64_t delivered() const { return delivered_; }
  std::size_t under_way() const { return queue_.size(); }
  const Capabilities& capabilities() const { return capabilities_; }

 private:
  friend class VirtualTransport;

  struct Message {
    std::int64_t arrival_ns;
    std::int64_t number;  // ties go by age, so a run is the same everywhere
    std::vector<std::byte> bytes;
    std::byte* place;
    std::uint64_t* flag;
    std::uint64_t flag_value;
    bool forward;
  };
  struct Later {
    bool operator()(const Message& a, const Message& b) const {
      return a.arrival_ns != b.arrival_ns ? a.arrival_ns > b.arrival_ns : a.number > b.number;
    }
  };

  void send(int source, const Put& put);

  int ranks_;
  VirtualOptions options_;
  Capabilities capabilities_;
  base::Prng prng_;
  std::int64_t now_ns_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t delivered_ = 0;
  std::vector<std::int64_t> last_arrival_ns_;  // by source * ranks + target
  std::priority_queue<Message, std::vector<Message>, Later> queue_;
};

}  // namespace unisono::transport

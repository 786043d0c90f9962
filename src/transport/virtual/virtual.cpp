// SPDX-License-Identifier: BSD-3-Clause
#include "transport/virtual/virtual.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.hpp"
#include "transport/shm/process_memory.hpp"

namespace unisono::transport {

class VirtualTransport final : public Transport {
 public:
  VirtualTransport(VirtualNetwork& network, int rank) : network_(network), rank_(rank) {}

  const Capabilities& capabilities() const override { return network_.capabilities(); }
  void put(const Put& message) override { network_.send(rank_, message); }
  bool try_pull(pid_t process, std::uint64_t address, std::byte* target,
                std::size_t bytes) override {
    return read_process(process, address, target, bytes) == 0;
  }
  Pulled pull(const Pull& message) override {
    std::memcpy(message.target, reinterpret_cast<const std::byte*>(message.address), message.bytes);
    return Pulled::done;
  }
  int progress() override { return 0; }

 private:
  VirtualNetwork& network_;
  int rank_;
};

VirtualNetwork::VirtualNetwork(int ranks, const VirtualOptions& options)
    : ranks_(ranks),
      options_(options),
      capabilities_{.name = "virtual",
                    .ordered = !options.reorder,
                    .multicast = options.multicast,
                    .shared_receive_buffers = true,
                    .pull = options.pull},
      prng_(options.seed),
      last_arrival_ns_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks), 0) {
  UNISONO_CHECK(options.delay_min_ns >= 0 && options.delay_max_ns >= options.delay_min_ns,
                "delays of a virtual network");
}

std::unique_ptr<Transport> VirtualNetwork::attach(int rank) {
  UNISONO_CHECK(rank >= 0 && rank < ranks_, "rank of a virtual network");
  return std::make_unique<VirtualTransport>(*this, rank);
}

void VirtualNetwork::send(int source, const Put& put) {
  const auto width = static_cast<std::uint64_t>(options_.delay_max_ns - options_.delay_min_ns) + 1;
  std::int64_t arrival =
      now_ns_ + options_.delay_min_ns + static_cast<std::int64_t>(prng_.below(width));
  // Bytes without a flag are the first part of a message whose flag follows. The flag must not
  // overtake them, so they are delivered at once.
  if (put.flag == nullptr) {
    if (put.bytes != 0) std::memcpy(put.place, put.source, put.bytes);
    return;
  }
  auto& last = last_arrival_ns_[static_cast<std::size_t>(source * ranks_ + put.target)];
  if (!options_.reorder) arrival = std::max(arrival, last + 1);
  last = std::max(last, arrival);
  Message message{arrival, sent_++, {}, put.place, put.flag, put.flag_value, put.forward};
  message.bytes.assign(put.source, put.source + put.bytes);
  queue_.push(std::move(message));
}

bool VirtualNetwork::advance() {
  if (queue_.empty()) return false;
  const Message& message = queue_.top();
  now_ns_ = std::max(now_ns_, message.arrival_ns);
  if (!message.bytes.empty()) {
    std::memcpy(message.place, message.bytes.data(), message.bytes.size());
  }
  raise(message.flag, message.flag_value, message.forward);
  ++delivered_;
  queue_.pop();
  return true;
}

}  // namespace unisono::transport

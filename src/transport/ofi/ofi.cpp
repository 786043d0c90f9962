// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/ofi.hpp"

#include <fmt/format.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/thread_signals.hpp"
#include "transport/ofi/endpoint.hpp"
#include "transport/ofi/kept_signal_actions.hpp"
#include "transport/ofi/library.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

// A transfer is made in parts of at most this size; moved() counts the finished ones. Each part of
// a write is copied to a block, which is kept until the part has arrived.
constexpr std::size_t kPartBytes = std::size_t{256} << 10;
// 32 MiB: half of the default size of a communicator's buffers. Beyond it, write() refuses.
constexpr std::size_t kMostBlocks = 128;
constexpr std::size_t kCompletions = 1024;  // size of the queue; no more parts than this are posted
// 4 MiB for each rank, so that one rank that takes nothing leaves room for the others.
constexpr std::size_t kMostPostedToOne = 16;

// One write or read of the provider, which identifies it by `context`.
struct Part {
  fi_context2 context{};  // first
  int rank = -1;
  bool is_read = false;
  std::uint64_t offset = 0;
  std::byte* local = nullptr;
  std::size_t bytes = 0;
  std::size_t block = 0;
  std::size_t whole = 0;  // index of the transfer it belongs to
  bool is_posted = false;
  Part* next = nullptr;  // the next part that waits for room
};

// A transfer, of one or more parts.
struct Whole {
  int rank = -1;
  std::uint64_t token = 0;
  std::size_t parts_left = 0;
  bool arrived = true;
};

struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint64_t key = 0;
  std::uint64_t base = 0;
  std::size_t posted = 0;  // parts
  std::uint64_t moved = 0;
  Part* first_waiting = nullptr;  // parts that were not posted yet, for want of room
  Part* last_waiting = nullptr;
  std::string error;
};

struct Block {
  std::unique_ptr<std::byte[]> memory;
  OfiOwned<fid_mr> registration;  // where the provider wants one
};

class Ofi final : public RemoteMemory {
 public:
  Ofi(const OfiLibrary& library, const OfiOptions& options)
      : library_(library),
        options_(options),
        endpoint_(library, options, kCompletions),
        peers_(static_cast<std::size_t>(options.ranks)) {}
  ~Ofi() override;
  Status open();

  std::string_view name() const override { return endpoint_.name(); }
  const RegionCard& card() const override { return endpoint_.card(); }
  Status meet(int rank, const RegionCard& card) override;
  bool write(const Transfer& transfer) override;
  bool read(const Transfer& transfer) override;
  std::size_t poll(std::span<Completion> completions) override;
  std::size_t under_way() const override { return under_way_; }
  std::uint64_t moved(int rank) const override {
    return peers_[static_cast<std::size_t>(rank)].moved;
  }
  int descriptor() const override { return descriptor_; }
  bool may_sleep() override;
  const std::string& error_of(int rank) const override {
    return peers_[static_cast<std::size_t>(rank)].error;
  }

 private:
  const char* text_of(long result) const { return library_.strerror(static_cast<int>(-result)); }
  bool make_block();
  std::size_t take_whole(const Transfer& transfer, std::size_t parts);
  Part& take_part(const Transfer& transfer, std::size_t whole);
  bool post(Part& part);
  void post_or_keep(Part& part);
  void post_waiting();
  void collect();
  bool collect_error();
  void break_off(long result);
  void finish(Part& part, bool arrived);
  void report(const Part& part, bool arrived);
  void fail(Part& part, std::string_view how);
  void note_error(const Part& part, std::string_view how);

  const OfiLibrary& library_;
  OfiOptions options_;
  OfiEndpoint endpoint_;
  std::vector<Block> blocks_;
  int descriptor_ = -1;
  std::vector<Peer> peers_;  // by rank
  std::vector<std::size_t> free_blocks_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Part*> free_parts_;
  std::vector<Whole> wholes_;
  std::vector<std::size_t> free_wholes_;
  std::vector<int> waiting_;  // ranks with parts that wait for room
  std::deque<Completion> complete_;
  std::size_t under_way_ = 0;
  std::size_t posted_ = 0;
  bool is_broken_ = false;  // the queue has failed and reports no more completions
};

// After the endpoint is closed, the provider no longer accesses blocks and parts. Memory that is
// bound to the endpoint has to be freed before it.
Ofi::~Ofi() {
  if (endpoint_.binds_memory()) {
    for (Block& block : blocks_) block.registration.reset();
  }
  endpoint_.close();
}

Status Ofi::open() {
  UNISONO_TRY(endpoint_.open());
  descriptor_ = endpoint_.descriptor();
  return base::success();
}

Status Ofi::meet(int rank, const RegionCard& card) {
  UNISONO_CHECK(rank >= 0 && rank < options_.ranks, "rank of a region");
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  UNISONO_ASSIGN(peer.address, endpoint_.address_of(rank, card));
  peer.key = card.key;
  peer.base = card.base;
  return base::success();
}

// ---- transfers ---------------------------------------------------------------------------------

// False if no memory is available, or the provider does not accept it.
bool Ofi::make_block() {
  if (blocks_.size() == kMostBlocks) return false;
  Block block{std::make_unique_for_overwrite<std::byte[]>(kPartBytes), nullptr};
  if (endpoint_.wants_local_registration()) {
    auto enrolled = endpoint_.enroll(block.memory.get(), kPartBytes, FI_WRITE);
    if (!enrolled.ok()) return false;
    block.registration = std::move(*enrolled);
  }
  free_blocks_.push_back(blocks_.size());
  blocks_.push_back(std::move(block));
  return true;
}

std::size_t Ofi::take_whole(const Transfer& transfer, std::size_t parts) {
  if (free_wholes_.empty()) {
    free_wholes_.push_back(wholes_.size());
    wholes_.emplace_back();
  }
  const std::size_t index = free_wholes_.back();
  free_wholes_.pop_back();
  wholes_[index] = {.rank = transfer.rank, .token = transfer.token, .parts_left = parts};
  ++under_way_;
  return index;
}

Part& Ofi::take_part(const Transfer& transfer, std::size_t whole) {
  if (free_parts_.empty()) {
    free_parts_.push_back(parts_.emplace_back(std::make_unique<Part>()).get());
  }
  Part& part = *free_parts_.back();
  free_parts_.pop_back();
  part.rank = transfer.rank;
  part.whole = whole;
  return part;
}

bool Ofi::write(const Transfer& transfer) {
  UNISONO_CHECK(transfer.bytes != 0 && transfer.offset <= options_.region_bytes &&
                    transfer.bytes <= options_.region_bytes - transfer.offset,
                "a write outside the region");
  if (is_broken_) return false;
  const std::size_t parts = (transfer.bytes + kPartBytes - 1) / kPartBytes;
  while (free_blocks_.size() < parts) {
    if (!make_block()) return false;
  }
  const std::size_t whole = take_whole(transfer, parts);
  for (std::size_t done = 0; done < transfer.bytes; done += kPartBytes) {
    Part& part = take_part(transfer, whole);
    part.is_read = false;
    part.block = free_blocks_.back();
    free_blocks_.pop_back();
    part.offset = transfer.offset + done;
    part.bytes = std::min(kPartBytes, transfer.bytes - done);
    part.local = blocks_[part.block].memory.get();
    std::memcpy(part.local, transfer.from + done, part.bytes);
    post_or_keep(part);
  }
  return true;
}

// Into where it belongs: the region is registered.
bool Ofi::read(const Transfer& transfer) {
  UNISONO_CHECK(transfer.bytes != 0 && transfer.offset <= options_.region_bytes &&
                    transfer.bytes <= options_.region_bytes - transfer.offset,
                "a read outside the region");
  if (is_broken_) return false;
  const std::size_t whole = take_whole(transfer, (transfer.bytes + kPartBytes - 1) / kPartBytes);
  for (std::size_t done = 0; done < transfer.bytes; done += kPartBytes) {
    Part& part = take_part(transfer, whole);
    part.is_read = true;
    part.offset = transfer.offset + done;
    part.bytes = std::min(kPartBytes, transfer.bytes - done);
    part.local = transfer.to + done;
    post_or_keep(part);
  }
  return true;
}

// False if the provider does not take it now.
bool Ofi::post(Part& part) {
  Peer& peer = peers_[static_cast<std::size_t>(part.rank)];
  if (peer.posted == kMostPostedToOne || posted_ == kCompletions) return false;
  fid_mr* const registration =
      part.is_read ? endpoint_.region() : blocks_[part.block].registration.get();
  void* descriptor = endpoint_.wants_local_registration() ? fi_mr_desc(registration) : nullptr;
  const iovec local{part.local, part.bytes};
  const fi_rma_iov remote{.addr = peer.base + part.offset, .len = part.bytes, .key = peer.key};
  const fi_msg_rma message{.msg_iov = &local,
                           .desc = &descriptor,
                           .iov_count = 1,
                           .addr = peer.address,
                           .rma_iov = &remote,
                           .rma_iov_count = 1,
                           .context = &part.context,
                           .data = 0};
  const ssize_t result =
      part.is_read ? fi_readmsg(endpoint_.get(), &message, FI_COMPLETION)
                   : fi_writemsg(endpoint_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  if (result == -FI_EAGAIN) return false;
  if (result != 0) {
    fail(part, text_of(result));
    return true;
  }
  part.is_posted = true;
  ++peer.posted;
  ++posted_;
  return true;
}

void Ofi::post_or_keep(Part& part) {
  Peer& peer = peers_[static_cast<std::size_t>(part.rank)];
  if (peer.first_waiting == nullptr && post(part)) return;
  part.next = nullptr;
  if (peer.first_waiting == nullptr) {
    waiting_.push_back(part.rank);
    peer.first_waiting = &part;
  } else {
    peer.last_waiting->next = &part;
  }
  peer.last_waiting = &part;
}

// A rank that accepts nothing must not delay the parts for others.
void Ofi::post_waiting() {
  std::erase_if(waiting_, [this](int rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    while (peer.first_waiting != nullptr) {
      Part& part = *peer.first_waiting;
      Part* const next = part.next;  // a part that fails is free at once
      if (!post(part)) return false;
      peer.first_waiting = next;
    }
    return true;
  });
}

void Ofi::finish(Part& part, bool arrived) {
  if (std::exchange(part.is_posted, false)) {
    --peers_[static_cast<std::size_t>(part.rank)].posted;
    --posted_;
  }
  if (!part.is_read) free_blocks_.push_back(part.block);
  report(part, arrived);
  free_parts_.push_back(&part);
}

void Ofi::report(const Part& part, bool arrived) {
  ++peers_[static_cast<std::size_t>(part.rank)].moved;
  Whole& whole = wholes_[part.whole];
  whole.arrived &= arrived;
  if (--whole.parts_left == 0) {
    complete_.push_back({whole.rank, whole.token, whole.arrived});
    free_wholes_.push_back(part.whole);
  }
}

void Ofi::fail(Part& part, std::string_view how) {
  note_error(part, how);
  finish(part, false);
}

void Ofi::note_error(const Part& part, std::string_view how) {
  std::string& error = peers_[static_cast<std::size_t>(part.rank)].error;
  if (!error.empty()) return;
  error = fmt::format("{}: a {} of {} bytes {} rank {} failed: {}", endpoint_.name(),
                      part.is_read ? "read" : "write", part.bytes, part.is_read ? "from" : "to",
                      part.rank, how);
}

void Ofi::collect() {
  constexpr std::size_t kAtOnce = 16;
  fi_cq_entry entries[kAtOnce];
  ssize_t count;
  do {
    count = fi_cq_read(endpoint_.queue(), entries, kAtOnce);
    if (count == -FI_EAVAIL && !collect_error()) return;
    if (count < 0 && count != -FI_EAGAIN && count != -FI_EAVAIL) return break_off(count);
    for (ssize_t i = 0; i < count; ++i) finish(*static_cast<Part*>(entries[i].op_context), true);
  } while (count == kAtOnce || count == -FI_EAVAIL);
}

// False if there is none after all.
bool Ofi::collect_error() {
  fi_cq_err_entry entry{};
  const ssize_t count = fi_cq_readerr(endpoint_.queue(), &entry, 0);
  if (count < 0 && count != -FI_EAGAIN) break_off(count);
  if (count != 1) return false;
  if (entry.op_context == nullptr) return true;  // an operation of another rank on our memory
  char text[128] = "";
  const char* const detail =
      fi_cq_strerror(endpoint_.queue(), entry.prov_errno, entry.err_data, text, sizeof text);
  fail(*static_cast<Part*>(entry.op_context),
       fmt::format("{} ({})", library_.strerror(entry.err), detail == nullptr ? "" : detail));
  return true;
}

// The provider may still write to and read from the memory of posted parts, so that memory is not
// reused.
void Ofi::break_off(long result) {
  is_broken_ = true;
  descriptor_ = -1;
  const std::string how = fmt::format(
      "the completion queue failed: {}; set UNISONO_BULK=udp to go without libfabric, or try "
      "another UNISONO_OFI_PROVIDER",
      text_of(result));
  for (const auto& part : parts_) {
    if (!part->is_posted) continue;
    note_error(*part, how);
    report(*part, false);
  }
  for (const int rank : std::exchange(waiting_, {})) {
    Part* part = std::exchange(peers_[static_cast<std::size_t>(rank)].first_waiting, nullptr);
    while (part != nullptr) fail(*std::exchange(part, part->next), how);
  }
}

std::size_t Ofi::poll(std::span<Completion> completions) {
  if (!is_broken_) collect();
  if (!waiting_.empty()) post_waiting();
  const std::size_t count = std::min(completions.size(), complete_.size());
  std::copy_n(complete_.begin(), count, completions.begin());
  complete_.erase(complete_.begin(), complete_.begin() + static_cast<std::ptrdiff_t>(count));
  under_way_ -= count;
  return count;
}

bool Ofi::may_sleep() {
  if (!complete_.empty()) return false;
  return descriptor_ < 0 || endpoint_.may_sleep();
}

}  // namespace

base::Result<std::unique_ptr<RemoteMemory>> open_ofi_with(const OfiLibrary& library,
                                                          const OfiOptions& options) {
  const base::NoSignals quiet;  // providers have threads
  auto ofi = std::make_unique<Ofi>(library, options);
  const Status opened = ofi->open();
  if (opened.ok()) return std::unique_ptr<RemoteMemory>(std::move(ofi));
  return Error{opened.error().code, fmt::format("{} (provider {}, at {})", opened.error().message,
                                                options.provider, ip_text(options.address))};
}

base::Result<std::unique_ptr<RemoteMemory>> open_ofi(const OfiOptions& options) {
  const KeptSignalActions kept;
  const auto& library = ofi_library();
  if (!library.ok()) return library.error();
  return open_ofi_with(*library, options);
}

}  // namespace unisono::transport

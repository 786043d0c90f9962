// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/verbs.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/thread_signals.hpp"
#include "transport/verbs/device.hpp"
#include "transport/verbs/handshake.hpp"
#include "transport/verbs/incoming.hpp"
#include "transport/verbs/library.hpp"
#include "transport/verbs/outgoing.hpp"
#include "transport/verbs/ring.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;
using base::Status;

constexpr int kCompletionsAtOnce = 16;
constexpr int kPollsForOneLook = 4;  // at the queue of receives; frames are found without it
// Requests for connections are datagrams, which may be lost. Messages go another way meanwhile.
constexpr std::int64_t kFirstRepeatNs = 20 * base::kMillisecond;
constexpr std::int64_t kMostRepeatNs = 5 * base::kSecond;
constexpr std::uint64_t kControlRequest = ~std::uint64_t{0};

// Whether a request ended so by a fault of the device here, whatever the other side did.
bool is_own_fault(ibv_wc_status status) {
  return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR ||
         status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_FATAL_ERR ||
         status == IBV_WC_GENERAL_ERR;
}

struct VerbsPeer {
  std::optional<VerbsAddress> address;  // none: not met
  VerbsOwned<ibv_ah> handle{nullptr, nullptr};
  std::unique_ptr<VerbsOutgoing> outgoing;
  std::unique_ptr<VerbsIncoming> incoming;
  std::int64_t repeat_ns = 0;  // when the request is sent again
  std::int64_t pause_ns = 0;
  bool refused = false;    // no connection can be made
  bool forgotten = false;  // it has left, or is lost
  std::string error;
};

// The connections of all ranks, and how they end.
class VerbsPeers {
 public:
  VerbsPeers(const VerbsOptions& options, VerbsDevice& device)
      : rank_(options.rank), device_(device), all_(static_cast<std::size_t>(options.ranks)) {}

  std::size_t size() const { return all_.size(); }
  VerbsPeer& operator[](std::size_t rank) { return all_[rank]; }
  const VerbsPeer& operator[](std::size_t rank) const { return all_[rank]; }
  std::size_t under_way() const;
  std::uint64_t failures() const { return failures_; }
  const std::string& device_loss() const { return device_loss_; }
  std::uint64_t refused() const { return refused_; }

  void refuse(int rank, const std::string& why);
  void fail(int rank, std::string_view what, std::string_view why);
  // A request ended so; or, without a status, the device did not take it.
  void fail_request(int rank, std::string_view what, std::optional<ibv_wc_status> status);
  void look_at_sends();
  void look_at_outgoing(std::span<const int> ranks);
  void look_at_events();

 private:
  void end_request(const ibv_wc& done);
  void lose_device(std::string_view why);

  const int rank_;
  VerbsDevice& device_;
  std::vector<VerbsPeer> all_;  // by rank
  std::uint64_t failures_ = 0;
  std::string device_loss_;
  std::uint64_t refused_ = 0;
};

class Verbs final : public RemoteMemory {
 public:
  Verbs(const VerbsLibrary& library, const VerbsOptions& options)
      : options_(options), device_(library), peers_(options, device_) {}
  Status open();

  std::string_view name() const override { return name_; }
  const RegionCard& card() const override { return card_; }
  Status meet(int rank, const RegionCard& card) override;

  bool raises_flags() const override { return true; }
  bool accepts_message(int rank) override;
  bool write(const Transfer& transfer) override;
  bool read(const Transfer&) override { return false; }
  std::size_t poll(std::span<Completion>) override;
  std::uint64_t flags_raised() const override { return flags_raised_; }
  std::size_t under_way() const override { return peers_.under_way(); }
  std::uint64_t moved(int rank) const override;
  void forget(int rank) override;

  int descriptor() const override { return sleeper_.get(); }
  bool may_sleep() override;
  const std::string& error_of(int rank) const override {
    return peers_[static_cast<std::size_t>(rank)].error;
  }
  std::uint64_t failures() const override { return peers_.failures(); }
  std::string device_loss() const override { return peers_.device_loss(); }
  std::string trouble() const override;

 private:
  VerbsPeer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool begin_connection(int rank);
  void send_handshake(VerbsPeer& to, int rank, VerbsHandshake handshake);
  void repeat_requests();
  void take_control(const ibv_wc& done);
  void take_request(VerbsPeer& from, const VerbsHandshake& handshake);
  void take_answer(VerbsPeer& from, const VerbsHandshake& handshake);
  bool look_at_rings();
  bool look_at_ring(int rank);
  bool look_at_receives();

  VerbsOptions options_;
  std::string name_;
  RegionCard card_;
  VerbsDevice device_;  // after it, what needs it
  base::Descriptor sleeper_;
  VerbsPeers peers_;
  std::vector<int> incoming_;  // ranks with a ring here
  std::vector<int> outgoing_;  // ranks with a connection, made or asked for
  std::size_t connections_ = 0;
  std::size_t asked_ = 0;  // of outgoing_: not answered yet
  std::uint64_t flags_raised_ = 0;
  std::uint64_t rejected_ = 0;
  int polls_ = 0;
};

void VerbsPeers::refuse(int rank, const std::string& why) {
  all_[static_cast<std::size_t>(rank)].refused = true;
  base::log(refused_++ == 0 ? base::LogLevel::warn : base::LogLevel::info, "verbs",
            "messages to and from rank {} go another way: {}", rank, why);
}

void VerbsPeers::fail(int rank, std::string_view what, std::string_view why) {
  std::string& error = all_[static_cast<std::size_t>(rank)].error;
  if (!error.empty() || all_[static_cast<std::size_t>(rank)].forgotten) return;
  error = fmt::format(
      "verbs: rank {} at {}: {} rank {} failed: {}; check the link (`rdma link`) on both hosts, or "
      "set UNISONO_BULK=tcp",
      rank_, device_.name(), what, rank, why);
  ++failures_;
}

// The other rank is named only if nothing speaks against the own device, whose end flushes all
// requests. It is asked for its port, as soft-RoCE reports no removal.
void VerbsPeers::fail_request(int rank, std::string_view what,
                              std::optional<ibv_wc_status> status) {
  const VerbsPeer& of = all_[static_cast<std::size_t>(rank)];
  if (!of.error.empty() || of.forgotten) return;
  look_at_events();
  if (!device_loss_.empty()) return;
  const char* const why = status ? device_.text_of(*status) : "the device refuses it";
  if (!device_.is_active()) {
    lose_device("the port is no longer active, or the device was removed");
  } else if (!status || is_own_fault(*status)) {
    lose_device(fmt::format("{} rank {} failed here: {}", what, rank, why));
  } else {
    fail(rank, what, why);
  }
}

// All connections end with it.
void VerbsPeers::lose_device(std::string_view why) {
  if (!device_loss_.empty()) return;
  device_loss_ = fmt::format(
      "verbs: rank {} at {}: {}; check the device on that host (`rdma link`, `dmesg`), or set "
      "UNISONO_BULK=tcp",
      rank_, device_.name(), why);
  for (int rank = 0; rank < static_cast<int>(all_.size()); ++rank) {
    const VerbsPeer& of = all_[static_cast<std::size_t>(rank)];
    if (of.outgoing != nullptr || of.incoming != nullptr) fail(rank, "a connection with", why);
  }
}

std::size_t VerbsPeers::under_way() const {
  return static_cast<std::size_t>(std::ranges::count_if(all_, [](const VerbsPeer& each) {
    return each.outgoing != nullptr && each.error.empty() && each.outgoing->has_unacknowledged();
  }));
}

void VerbsPeers::look_at_sends() {
  std::array<ibv_wc, kCompletionsAtOnce> done;
  int count;
  do {
    count = ibv_poll_cq(device_.sends(), kCompletionsAtOnce, done.data());
    for (int i = 0; i < count; ++i) end_request(done[static_cast<std::size_t>(i)]);
  } while (count == kCompletionsAtOnce);
}

void VerbsPeers::end_request(const ibv_wc& done) {
  if (done.wr_id == kControlRequest) return;
  const bool is_return = (done.wr_id & kVerbsIncomingSide) != 0;
  const std::uint64_t number = (done.wr_id & ~kVerbsIncomingSide) >> 32;
  UNISONO_CHECK(number < all_.size(), "a completion of an unknown connection");
  const int rank = static_cast<int>(number);
  VerbsPeer& of = all_[static_cast<std::size_t>(rank)];
  if (done.status != IBV_WC_SUCCESS) {
    return fail_request(rank, is_return ? "an acknowledgement to" : "a write to", done.status);
  }
  if (is_return) {
    if (of.incoming != nullptr) of.incoming->complete();
  } else if (of.outgoing != nullptr) {
    of.outgoing->complete(done.wr_id & 0xffff'ffff);
  }
}

void VerbsPeers::look_at_outgoing(std::span<const int> ranks) {
  for (const int rank : ranks) {
    VerbsPeer& to = all_[static_cast<std::size_t>(rank)];
    if (to.outgoing == nullptr || !to.outgoing->is_open() || !to.error.empty()) continue;
    if (!to.outgoing->look()) fail_request(rank, "a write to", std::nullopt);
  }
}

// Any event but the device's end shows at the connections.
void VerbsPeers::look_at_events() {
  for (int event = device_.next_event(); event >= 0; event = device_.next_event()) {
    if (event == IBV_EVENT_PORT_ERR) {
      base::log(base::LogLevel::warn, "verbs", "rank {}: {} is no longer active", rank_,
                device_.name());
    }
    if (event == IBV_EVENT_DEVICE_FATAL) lose_device(verbs_loss_text(event));
  }
}

// ---- opening -----------------------------------------------------------------------------------

Status Verbs::open() {
  UNISONO_TRY(device_.open(options_));
  name_ = "verbs/" + device_.name().substr(0, device_.name().find(' '));
  card_ = card_of_verbs(device_.address());
  sleeper_.reset(epoll_create1(EPOLL_CLOEXEC));
  for (const int each : {device_.channel(), device_.events()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (!sleeper_.valid() || epoll_ctl(sleeper_.get(), EPOLL_CTL_ADD, each, &event) != 0) {
      return Error{Code::system, fmt::format("verbs: epoll: {}", std::strerror(errno))};
    }
  }
  return base::success();
}

Status Verbs::meet(int rank, const RegionCard& card) {
  UNISONO_CHECK(rank >= 0 && rank < options_.ranks && rank != options_.rank, "rank of a peer");
  peer(rank).address = verbs_address_of(card);
  if (peer(rank).address) return base::success();
  return Error{
      Code::peer_argument,
      fmt::format("verbs: rank {} sent an address of another form; run the same Unisono on "
                  "all hosts",
                  rank)};
}

// ---- connections -------------------------------------------------------------------------------

// False: none can be made.
bool Verbs::begin_connection(int rank) {
  VerbsPeer& to = peer(rank);
  if (!to.address || to.refused || to.forgotten || !to.error.empty()) return false;
  if (connections_ == device_.most_connections()) {
    peers_.refuse(
        rank, fmt::format("{} has {} connections and takes no more", device_.name(), connections_));
    return false;
  }
  auto begun = VerbsOutgoing::begin(device_, rank);
  if (!begun.ok()) {
    peers_.refuse(rank, begun.error().message);
    return false;
  }
  to.outgoing = std::move(*begun);
  outgoing_.push_back(rank);
  ++connections_;
  ++asked_;
  to.pause_ns = kFirstRepeatNs;
  to.repeat_ns = base::now_ns() + to.pause_ns;
  send_handshake(to, rank, to.outgoing->request());
  return true;
}

// A datagram that finds no room is repeated like a lost one.
void Verbs::send_handshake(VerbsPeer& to, int rank, VerbsHandshake handshake) {
  handshake.from = static_cast<std::uint32_t>(options_.rank);
  handshake.to = static_cast<std::uint32_t>(rank);
  if (to.handle == nullptr) {
    auto handle = device_.address_handle(*to.address);
    if (!handle.ok()) return peers_.refuse(rank, handle.error().message);
    to.handle = std::move(*handle);
  }
  device_.send_control(to.handle.get(), to.address->control,
                       encode_verbs_handshake(handshake, options_.key));
}

void Verbs::repeat_requests() {
  const std::int64_t now = base::now_ns();
  for (const int rank : outgoing_) {
    VerbsPeer& to = peer(rank);
    if (to.outgoing == nullptr || to.outgoing->is_open() || now < to.repeat_ns) continue;
    to.pause_ns = std::min(to.pause_ns * 2, kMostRepeatNs);
    to.repeat_ns = now + to.pause_ns;
    send_handshake(to, rank, to.outgoing->request());
  }
}

void Verbs::take_control(const ibv_wc& done) {
  if (done.status != IBV_WC_SUCCESS) return;  // it is being closed
  const auto handshake =
      decode_verbs_handshake(device_.control_bytes(done.wr_id, done.byte_len), options_.key);
  device_.post_control(done.wr_id);
  const bool is_ours = handshake && handshake->from < peers_.size() &&
                       handshake->to == static_cast<std::uint32_t>(options_.rank) &&
                       handshake->from != handshake->to;
  if (!is_ours) {
    ++rejected_;
    return;
  }
  VerbsPeer& from = peers_[handshake->from];
  if (!from.address || from.forgotten) return;  // it repeats a request after this rank has met it
  if (handshake->kind == VerbsHandshake::Kind::request) return take_request(from, *handshake);
  take_answer(from, *handshake);
}

void Verbs::take_request(VerbsPeer& from, const VerbsHandshake& handshake) {
  const int rank = static_cast<int>(handshake.from);
  if (from.incoming == nullptr) {
    if (from.refused) return;
    if (connections_ == device_.most_connections()) {
      return peers_.refuse(rank, fmt::format("{} has {} connections and takes no more",
                                             device_.name(), connections_));
    }
    auto accepted = VerbsIncoming::accept(device_, *from.address, handshake);
    if (!accepted.ok()) return peers_.refuse(rank, accepted.error().message);
    from.incoming = std::move(*accepted);
    incoming_.push_back(rank);
    ++connections_;
  }
  if (from.incoming->request() != handshake) return;  // a rank asks once, and repeats it
  send_handshake(from, rank, from.incoming->answer());
}

void Verbs::take_answer(VerbsPeer& from, const VerbsHandshake& handshake) {
  if (from.outgoing == nullptr || from.outgoing->is_open()) return;
  --asked_;
  const Status connected = from.outgoing->connect(*from.address, handshake);
  if (connected.ok()) return;
  from.outgoing.reset();
  peers_.refuse(static_cast<int>(handshake.from), connected.error().message);
}

void Verbs::forget(int rank) {
  VerbsPeer& of = peer(rank);
  of.forgotten = true;
  if (of.outgoing != nullptr && !of.outgoing->is_open()) --asked_;
  of.outgoing.reset();  // what it has sent is still read
  std::erase(outgoing_, rank);
}

// ---- writing -----------------------------------------------------------------------------------

bool Verbs::accepts_message(int rank) {
  VerbsPeer& to = peer(rank);
  if (to.outgoing == nullptr && !begin_connection(rank)) return false;
  return to.outgoing->is_open() && to.error.empty() && !to.outgoing->waits_for_room();
}

// Between its frames, what others have sent is read, as two ranks may send to each other.
bool Verbs::write(const Transfer& transfer) {
  UNISONO_CHECK(transfer.offset <= options_.region_bytes &&
                    transfer.bytes <= options_.region_bytes - transfer.offset,
                "a write outside the region");
  Transfer frame = transfer;
  std::size_t left = transfer.bytes;
  for (;;) {
    VerbsPeer& to = peer(transfer.rank);
    if (to.outgoing == nullptr || !to.error.empty()) return true;  // forgotten, or lost
    frame.bytes = std::min(left, kVerbsPieceBytes);
    left -= frame.bytes;
    frame.flag = left == 0 ? transfer.flag : kNoFlag;
    frame.forward = left == 0 && transfer.forward;
    if (!to.outgoing->write(frame)) peers_.fail_request(transfer.rank, "a write to", std::nullopt);
    if (left == 0) return true;
    frame.offset += frame.bytes;
    frame.from += frame.bytes;
    look_at_rings();
    peers_.look_at_sends();
  }
}

std::uint64_t Verbs::moved(int rank) const {
  const auto& outgoing = peers_[static_cast<std::size_t>(rank)].outgoing;
  return outgoing == nullptr ? 0 : outgoing->moved();
}

// ---- what comes --------------------------------------------------------------------------------

std::size_t Verbs::poll(std::span<Completion>) {
  look_at_rings();
  peers_.look_at_sends();
  peers_.look_at_outgoing(outgoing_);
  if (++polls_ % kPollsForOneLook == 0) {
    look_at_receives();
    if (asked_ != 0) repeat_requests();
  }
  return 0;
}

bool Verbs::look_at_rings() {
  bool found = false;
  for (const int rank : incoming_) found |= look_at_ring(rank);
  return found;
}

bool Verbs::look_at_ring(int rank) {
  VerbsPeer& from = peer(rank);
  if (from.incoming == nullptr) return false;
  bool any = false;
  for (std::uint64_t i = 0; i < kVerbsSlots; ++i) {
    const auto found = from.incoming->take({options_.region, options_.region_bytes});
    if (found == VerbsIncoming::Found::nothing) break;
    any = true;
    if (found == VerbsIncoming::Found::flag) ++flags_raised_;
    if (found == VerbsIncoming::Found::broken) {
      from.incoming.reset();
      peers_.fail(rank, "a message from", "it names memory outside of the region");
      return true;
    }
  }
  if (!from.forgotten && from.error.empty() && !from.incoming->return_room()) {
    peers_.fail_request(rank, "an acknowledgement to", std::nullopt);
  }
  return any;
}

bool Verbs::look_at_receives() {
  std::array<ibv_wc, kCompletionsAtOnce> done;
  int count;
  bool any = false;
  do {
    count = ibv_poll_cq(device_.receives(), kCompletionsAtOnce, done.data());
    std::size_t used = 0;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& each = done[static_cast<std::size_t>(i)];
      if (each.wr_id != kVerbsSharedReceive) {
        take_control(each);
      } else {
        ++used;
      }
    }
    device_.post_receives(used);
    any |= count > 0;
  } while (count == kCompletionsAtOnce);
  return any;
}

bool Verbs::may_sleep() {
  peers_.look_at_events();
  if (!device_.arm()) return false;
  const bool found = look_at_rings();
  peers_.look_at_sends();
  peers_.look_at_outgoing(outgoing_);
  return !look_at_receives() && !found;
}

// ---- for people --------------------------------------------------------------------------------

std::string Verbs::trouble() const {
  std::string text;
  if (rejected_ != 0) text += fmt::format("{} foreign requests dropped", rejected_);
  if (peers_.refused() != 0) {
    text += fmt::format("{}{} connections could not be made", text.empty() ? "" : ", ",
                        peers_.refused());
  }
  return text;
}

}  // namespace

base::Result<std::unique_ptr<RemoteMemory>> open_verbs_with(const VerbsLibrary& library,
                                                            const VerbsOptions& options) {
  const base::NoSignals quiet;  // providers may have threads
  auto verbs = std::make_unique<Verbs>(library, options);
  UNISONO_TRY(verbs->open());
  return std::unique_ptr<RemoteMemory>(std::move(verbs));
}

base::Result<std::unique_ptr<RemoteMemory>> open_verbs(const VerbsOptions& options) {
  const auto& library = verbs_library();
  if (!library.ok()) return library.error();
  return open_verbs_with(*library, options);
}

std::string verbs_description() {
  const auto& library = verbs_library();
  if (!library.ok()) return library.error().message;
  VerbsDevice device(*library);
  const Status opened = device.open({});
  return opened.ok() ? fmt::format("verbs: {} active", device.name()) : opened.error().message;
}

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tcp.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "transport/tcp/incoming_stream.hpp"
#include "transport/tcp/little_endian.hpp"
#include "transport/tcp/outgoing_stream.hpp"
#include "transport/tcp/stream_identity.hpp"
#include "transport/tcp/stream_socket.hpp"

namespace unisono::transport {
namespace {

using base::Error;
using base::Status;

// The poller reports the listening socket, an outgoing stream by its rank, or an incoming one by a
// number that is never used again. It also reports the descriptor beside them.
constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kFirstOutgoing = 1;
constexpr std::uint64_t kFirstIncoming = std::uint64_t{1} << 32;
constexpr std::uint64_t kBeside = ~std::uint64_t{0};

// Connections that have not proved the key, beyond one for each rank. The oldest makes room.
constexpr std::size_t kMoreGreeting = 64;
constexpr int kMostAcceptedAtOnce = 16;
constexpr std::size_t kEventsAtOnce = 32;
// Short messages in a row should not pay for streams that rest. So after some polls without an
// event, few of them ask the kernel.
constexpr int kPollsUntilQuiet = 256;
constexpr int kQuietPolls = 8;
// For so long after a look, a message begins without another one. If its connection ends meanwhile,
// that is as if it had ended just behind the message.
constexpr std::int64_t kLookedNs = 100 * base::kMicrosecond;
// Without descriptors for further streams, the rank tries again after so long.
constexpr std::int64_t kListenPauseNs = base::kSecond;

RegionCard card_of(const Endpoint& endpoint) {
  RegionCard card;
  card.address_bytes = 19;
  card.address[0] = static_cast<std::byte>(endpoint.address.family);
  for (std::size_t i = 0; i < endpoint.address.bytes.size(); ++i) {
    card.address[1 + i] = static_cast<std::byte>(endpoint.address.bytes[i]);
  }
  store_little_endian(card.address.data() + 17, endpoint.port);
  return card;
}

base::Result<Endpoint> endpoint_of_card(int rank, const RegionCard& card) {
  const auto family = static_cast<std::uint8_t>(card.address[0]);
  if (card.address_bytes != 19 || family > static_cast<std::uint8_t>(Family::v6)) {
    return Error{base::Code::peer_argument,
                 fmt::format("tcp: rank {} sent an address of another form; run the same Unisono "
                             "on all hosts",
                             rank)};
  }
  Endpoint endpoint;
  endpoint.address.family = static_cast<Family>(family);
  for (std::size_t i = 0; i < endpoint.address.bytes.size(); ++i) {
    endpoint.address.bytes[i] = static_cast<std::uint8_t>(card.address[1 + i]);
  }
  endpoint.port = load_little_endian<std::uint16_t>(card.address.data() + 17);
  return endpoint;
}

void log_lack_of_descriptors() {
  base::log(base::LogLevel::warn, "tcp",
            "no descriptors for more streams: long messages of some ranks go as datagrams until "
            "there are; raise `ulimit -n`");
}

class Tcp final : public RemoteMemory {
 public:
  explicit Tcp(const StreamIdentity& identity)
      : RemoteMemory(&landings_),
        identity_(identity),
        outgoing_(static_cast<std::size_t>(identity.ranks)),
        errors_(static_cast<std::size_t>(identity.ranks)) {
    identity_.landings = &landings_;
  }
  Status open();

  std::string_view name() const override { return "tcp"; }
  const RegionCard& card() const override { return card_; }
  Status meet(int rank, const RegionCard& card) override;

  bool raises_flags() const override { return true; }
  bool accepts_message(int rank) override;
  bool write(const Transfer& transfer) override;
  bool read(const Transfer&) override { return false; }
  std::size_t poll(std::span<Completion>) override;
  std::uint64_t flags_raised() const override { return flags_raised_; }
  std::size_t under_way() const override;
  std::uint64_t moved(int rank) const override {
    return stream(rank) == nullptr ? 0 : stream(rank)->moved();
  }
  void forget(int rank) override;

  int descriptor() const override { return poller_.get(); }
  bool may_sleep() override {
    quiet_ = 0;  // the poll after the sleep asks the kernel
    return true;
  }
  bool watch_beside(int descriptor) override;
  const std::string& error_of(int rank) const override {
    return errors_[static_cast<std::size_t>(rank)];
  }
  std::uint64_t failures() const override { return failures_; }
  std::string trouble() const override;

 private:
  using Incoming = std::map<std::uint64_t, std::unique_ptr<IncomingStream>>;

  OutgoingStream* stream(int rank) const { return outgoing_[static_cast<std::size_t>(rank)].get(); }
  bool look_around();
  void look(std::uint64_t id, std::uint32_t events);
  void look_at_outgoing(int rank);
  void look_at_incoming(Incoming::iterator at);
  bool accept_one();
  void listen_again();
  void drop_oldest_greeting();
  void note_failure(int rank, const std::string& why);
  void note_refusal(int rank);

  StreamIdentity identity_;  // does not change once it is open
  StreamLandings landings_;
  RegionCard card_;
  base::Descriptor poller_;
  base::Descriptor listener_;
  bool listens_ = false;
  std::int64_t listens_again_ns_ = 0;  // at the latest
  bool has_lacked_descriptors_ = false;
  std::vector<std::unique_ptr<OutgoingStream>> outgoing_;  // by rank; null: not met
  Incoming incoming_;                                      // by number
  std::uint64_t next_incoming_ = kFirstIncoming;
  std::size_t greeting_ = 0;  // of incoming_: not proved yet
  std::vector<std::string> errors_;
  std::vector<int> refused_;  // ranks of which it was logged
  std::uint64_t failures_ = 0;
  std::uint64_t flags_raised_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t not_made_ = 0;  // own connections
  std::int64_t looked_ns_ = 0;  // when the poller last told of all
  int quiet_ = 0;               // polls without an event of a stream
  int skipped_ = 0;
};

Status Tcp::open() {
  UNISONO_TRY(prepare_handshakes());
  poller_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!poller_.valid()) return stream_error("epoll_create1", errno);
  UNISONO_ASSIGN(listener_, listen_at(identity_.address));
  UNISONO_ASSIGN(const Endpoint own, endpoint_of_socket(listener_));
  card_ = card_of(own);
  identity_.congestion = choose_congestion_control(listener_);
  listen_again();
  if (!listens_) return stream_error("epoll_ctl", errno);
  return base::success();
}

Status Tcp::meet(int rank, const RegionCard& card) {
  UNISONO_CHECK(rank >= 0 && rank < identity_.ranks && rank != identity_.rank, "rank of a stream");
  UNISONO_ASSIGN(const Endpoint endpoint, endpoint_of_card(rank, card));
  outgoing_[static_cast<std::size_t>(rank)] = std::make_unique<OutgoingStream>(
      identity_, rank, endpoint,
      OutgoingStream::Poller{poller_.get(), kFirstOutgoing + static_cast<std::uint64_t>(rank)});
  return base::success();
}

// ---- writing -----------------------------------------------------------------------------------

bool Tcp::accepts_message(int rank) {
  OutgoingStream* const to = stream(rank);
  if (to == nullptr) return false;
  if (to->state() == OutgoingStream::State::open && base::now_ns() - looked_ns_ > kLookedNs) {
    look_around();  // it may have ended
  }
  const bool accepts = to->accepts_message();
  if (!accepts) look_at_outgoing(rank);  // it may have ended just now
  return accepts;
}

// Between its batches, what others have sent is read. Otherwise their streams would stand still for
// as long, and two ranks that send to each other would take turns.
bool Tcp::write(const Transfer& transfer) {
  UNISONO_CHECK(transfer.offset <= identity_.region_bytes &&
                    transfer.bytes <= identity_.region_bytes - transfer.offset,
                "a write outside the region");
  OutgoingStream* const to = stream(transfer.rank);
  if (to == nullptr) return true;  // forgotten meanwhile
  Transfer piece = transfer;
  piece.flag = kNoFlag;
  piece.forward = false;
  for (std::size_t left = transfer.bytes; left > kMostBatchBytes; left -= kMostBatchBytes) {
    piece.bytes = kMostBatchBytes;
    to->write(piece);
    piece.offset += kMostBatchBytes;
    piece.from += kMostBatchBytes;
    look_around();
  }
  piece.bytes = transfer.bytes - (piece.offset - transfer.offset);
  piece.flag = transfer.flag;
  piece.forward = transfer.forward;
  to->write(piece);
  if (to->state() == OutgoingStream::State::failed) note_failure(transfer.rank, to->error());
  return true;
}

std::size_t Tcp::under_way() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      outgoing_, [](const auto& to) { return to != nullptr && to->has_unacknowledged(); }));
}

// Messages that it sent before it left are still read.
void Tcp::forget(int rank) { outgoing_[static_cast<std::size_t>(rank)].reset(); }

// ---- what comes --------------------------------------------------------------------------------

std::size_t Tcp::poll(std::span<Completion>) {
  beside_ = Beside::unknown;
  if (!listens_ && base::now_ns() >= listens_again_ns_) listen_again();
  if (quiet_ >= kPollsUntilQuiet && ++skipped_ % kQuietPolls != 0) return 0;
  if (look_around()) {
    quiet_ = 0;
  } else {
    quiet_ = std::min(quiet_ + 1, kPollsUntilQuiet);
  }
  return 0;
}

// Whether there was something of streams.
bool Tcp::look_around() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = epoll_wait(poller_.get(), events.data(), static_cast<int>(events.size()), 0);
  const bool are_all = count >= 0 && std::cmp_less(count, events.size());
  if (are_all) looked_ns_ = base::now_ns();
  beside_ = are_all ? Beside::silent : Beside::unknown;
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kBeside) {
      beside_ = Beside::readable;
    } else {
      look(event.data.u64, event.events);
      any = true;
    }
  }
  return any;
}

void Tcp::look(std::uint64_t id, std::uint32_t events) {
  if (id == kListener) {
    for (int i = 0; i < kMostAcceptedAtOnce && accept_one(); ++i) {
    }
    return;
  }
  if (id < kFirstIncoming) {
    const int rank = static_cast<int>(id - kFirstOutgoing);
    if (stream(rank) == nullptr) return;
    stream(rank)->look(events);
    return look_at_outgoing(rank);
  }
  const auto at = incoming_.find(id);  // an event before it may have ended it
  if (at != incoming_.end()) look_at_incoming(at);
}

void Tcp::look_at_outgoing(int rank) {
  OutgoingStream& to = *stream(rank);
  if (to.state() == OutgoingStream::State::failed) note_failure(rank, to.error());
  if (to.take_refusal()) note_refusal(rank);
}

void Tcp::look_at_incoming(Incoming::iterator at) {
  IncomingStream& stream = *at->second;
  const bool was_greeting = stream.state() == IncomingStream::State::greeting;
  const std::uint64_t flags = stream.flags();
  const IncomingStream::State state = stream.read();
  flags_raised_ += stream.flags() - flags;
  if (was_greeting && state != IncomingStream::State::greeting) --greeting_;
  switch (state) {
    case IncomingStream::State::greeting:
    case IncomingStream::State::open:
      return;
    case IncomingStream::State::rejected:
      ++rejected_;
      break;
    case IncomingStream::State::broken:
      note_failure(stream.rank(), stream.error());
      break;
    case IncomingStream::State::ended:
      break;
  }
  stream.leave(poller_.get());
  incoming_.erase(at);
  if (!listens_) listen_again();
}

bool Tcp::watch_beside(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kBeside;
  return descriptor >= 0 && epoll_ctl(poller_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Tcp::listen_again() {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  listens_ = epoll_ctl(poller_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
}

bool Tcp::accept_one() {
  base::Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return false;
    // The listener would be readable for ever. Connections that have proved nothing go first. The
    // others wait in the kernel until a stream ends, or for a while.
    if (greeting_ != 0) {
      drop_oldest_greeting();
      return true;
    }
    epoll_ctl(poller_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
    listens_ = false;
    listens_again_ns_ = base::now_ns() + kListenPauseNs;
    if (!std::exchange(has_lacked_descriptors_, true)) log_lack_of_descriptors();
    return false;
  }
  if (greeting_ == static_cast<std::size_t>(identity_.ranks) + kMoreGreeting) {
    drop_oldest_greeting();
  }
  const std::uint64_t id = next_incoming_++;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = id;
  if (epoll_ctl(poller_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) return true;
  incoming_.emplace(id, std::make_unique<IncomingStream>(std::move(socket), identity_));
  ++greeting_;
  return true;
}

void Tcp::drop_oldest_greeting() {
  const auto oldest = std::ranges::find_if(incoming_, [](const auto& each) {
    return each.second->state() == IncomingStream::State::greeting;
  });
  if (oldest == incoming_.end()) return;
  ++rejected_;
  --greeting_;
  incoming_.erase(oldest);
}

// ---- for people --------------------------------------------------------------------------------

void Tcp::note_failure(int rank, const std::string& why) {
  std::string& error = errors_[static_cast<std::size_t>(rank)];
  if (!error.empty()) return;
  error = why;
  ++failures_;
}

// A connection was not made: its messages go as datagrams. The first is a warning.
void Tcp::note_refusal(int rank) {
  ++not_made_;
  if (std::ranges::find(refused_, rank) != refused_.end()) return;
  base::log(refused_.empty() ? base::LogLevel::warn : base::LogLevel::info, "tcp",
            "long messages to rank {} go as datagrams: {}. Let TCP through between the hosts, or "
            "set UNISONO_BULK=udp",
            rank, stream(rank)->error());
  refused_.push_back(rank);
}

std::string Tcp::trouble() const {
  std::string text;
  if (rejected_ != 0) text += fmt::format("{} foreign connections dropped", rejected_);
  if (not_made_ != 0) {
    text += fmt::format("{}{} connections could not be made", text.empty() ? "" : ", ", not_made_);
  }
  return text;
}

}  // namespace

base::Result<std::unique_ptr<RemoteMemory>> open_tcp(const TcpOptions& options) {
  auto tcp = std::make_unique<Tcp>(
      StreamIdentity{.key = options.key,
                     .rank = options.rank,
                     .ranks = options.ranks,
                     .address = options.address,
                     .region = options.region,
                     .region_bytes = options.region_bytes,
                     .silence_ns = options.silence_ns,
                     .tags = options.tags_payloads ? fastest_tags() : TagKind::none});
  UNISONO_TRY(tcp->open());
  return std::unique_ptr<RemoteMemory>(std::move(tcp));
}

std::string tcp_description() {
  return fmt::format("tags by {}", library_name(PayloadTagger::choose(fastest_tags())));
}

}  // namespace unisono::transport

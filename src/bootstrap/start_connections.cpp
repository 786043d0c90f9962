// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/start_connections.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

#include "base/clock.hpp"

namespace unisono::bootstrap {

using base::Error;
using base::Result;

void StartConnections::step() {
  if (server_ != nullptr) {
    server_->step();
    const std::vector<int>& lost = server_->outcome().lost;
    for (; seen_lost_ < lost.size(); ++seen_lost_) lost_.push_back(lost[seen_lost_]);
  }
  if (failure_) return;
  const Result<std::optional<MessageStream::Received>> received =
      relay_ != nullptr ? relay_->turn(stream_, place_.challenge, place_.hello)
                        : stream_.receive(base::now_ns());
  if (!received.ok()) return;  // not from a rendezvous
  if (!*received) {
    // A rank of the server's host sees the end of that process.
    const bool lost = stream_.closed() && !has_ended_ && relay_ != nullptr;
    if (lost && place_.rank_zero_serves) lost_.push_back(0);
    has_ended_ |= stream_.closed();
    return;
  }
  const Refused* refused = std::get_if<Refused>(&(*received)->message);
  if (refused == nullptr) return;
  if (!signature_is_right((*received)->frame, place_.key, place_.hello)) return;
  failure_ = Error{refused->code, refused->text};
  if (relay_ != nullptr) relay_->refuse_all(*failure_);
}

std::vector<int> StartConnections::take_lost() { return std::exchange(lost_, {}); }

void StartConnections::tell(const Error& error) {
  if (failure_) return;
  failure_ = error;
  const Withdrawal withdrawal{place_.hello, Withdrawal::Reason::failed, error.code, error.message};
  if (relay_ != nullptr) {
    relay_->withdraw(withdrawal, stream_.socket(), place_.challenge);
    relay_->refuse_all(
        {error.code, fmt::format("rank {} cannot start: {}", place_.rank, error.message)});
    return;
  }
  std::string frame = encode(withdrawal);
  sign(frame, place_.key, place_.challenge);
  static_cast<void>(stream_.send(frame));  // where it has ended, nobody hears it
  if (server_ != nullptr) server_->step();
}

void StartConnections::end_start() {
  try {
    if (server_ != nullptr) accepted_ = server_->release_connections();
    if (relay_ != nullptr) accepted_ = relay_->release_connections();
  } catch (const std::exception&) {
    // They end then, which no rank notices any more: all have started.
  }
  server_.reset();
  relay_.reset();
}

}  // namespace unisono::bootstrap

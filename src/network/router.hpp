// SPDX-License-Identifier: BSD-3-Clause
// Router: a rank's one way to all ranks of the job. For each put it decides what carries it: a
// store, the transport within the host, or the network. The code above names a rank and does not
// ask where it is. A value that refers to the two transports, which outlive it. Any thread, as far
// as the transports allow.
#pragma once

#include <string>
#include <utility>

#include "topology/host_map.hpp"
#include "transport/transport.hpp"

namespace unisono::network {

class Router {
 public:
  // `here`: within the host of `rank`. `elsewhere`: to the other hosts; null: there are none.
  Router(transport::Transport& here, transport::Transport* elsewhere, topology::HostMap hosts,
         int rank)
      : here_(&here),
        elsewhere_(elsewhere),
        stores_(here.capabilities().direct),
        own_host_(hosts.of(rank)),
        hosts_(std::move(hosts)) {}
  // All ranks are on one host.
  explicit Router(transport::Transport& here) : Router(here, nullptr, {}, 0) {}
  // The same for ranks of this host alone.
  Router within_host() const { return Router(*here_); }

  // Whether every put is a store, so that nothing has to be carried on.
  bool only_stores() const { return stores_ && elsewhere_ == nullptr; }
  // Whether puts within the host are stores.
  bool stores_here() const { return stores_; }
  // Whether some ranks are on other hosts.
  bool leads_elsewhere() const { return elsewhere_ != nullptr; }

  // See Transport. A store is done in place: no call.
  [[gnu::always_inline]] void put(const transport::Put& message) const {
    if (stores_ && is_here(message.target)) [[likely]] {
      transport::store(message);
    } else {
      carrier(message.target).put(message);
    }
  }
  // To the other hosts only.
  void put_to_all(const transport::Put& message) const { elsewhere_->put_to_all(message); }
  void get(const transport::Get& wanted) const { elsewhere_->get(wanted); }
  // Within the host only.
  transport::Pulled pull(const transport::Pull& wanted) const { return here_->pull(wanted); }
  std::string pull_error() const { return here_->pull_error(); }
  // `in_outbox`: the awaited message is a multicast, which lies in its sender's buffers.
  void awaits(int rank, bool in_outbox) const {
    carrier(rank).awaits(rank);
    if (in_outbox && !is_here(rank)) elsewhere_->awaits_multicast(rank);
  }
  // Those of messages from other hosts; null: they do not land.
  transport::Landings* landings() const {
    return elsewhere_ == nullptr ? nullptr : elsewhere_->landings();
  }
  // Carries on the transport within the host.
  void progress_here() const {
    if (!stores_) here_->progress();
  }

 private:
  // The only question of the data path where a rank is.
  bool is_here(int rank) const { return elsewhere_ == nullptr || hosts_.of(rank) == own_host_; }
  transport::Transport& carrier(int rank) const { return is_here(rank) ? *here_ : *elsewhere_; }

  transport::Transport* here_;
  transport::Transport* elsewhere_;
  bool stores_;
  int own_host_;
  topology::HostMap hosts_;
};

}  // namespace unisono::network

// SPDX-License-Identifier: BSD-3-Clause
// A virtual network of datagrams. It has loss, duplication and delay (and so reordering) from a
// seed; partitions, narrow paths and deaths are calls. Time is a number that advance() moves;
// nothing sleeps. The same seed gives the same run, so a failing seed is a complete report. For one
// thread that drives all ranks; the network outlives the endpoints attached to it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "base/prng.hpp"
#include "transport/datagrams.hpp"

namespace unisono::transport {

struct VirtualDatagramOptions {
  std::uint64_t seed = 1;
  std::int64_t delay_min_ns = 10'000;
  std::int64_t delay_max_ns = 100'000;
  bool reorder = true;    // false: between two ranks, first sent is first delivered
  double loss = 0;        // share of the copies
  double duplicates = 0;  // datagrams that arrive twice
  std::size_t max_payload = 1472;
  std::size_t inbox = 4096;  // datagrams that wait at a rank; more are lost, as in a socket
  std::size_t room = 0;      // datagrams that send() takes between two receive(); 0: any number
  bool multicast = false;
  bool joins = false;  // what Datagrams::joins() says
};

class VirtualDatagramNetwork {
 public:
  VirtualDatagramNetwork(int ranks, const VirtualDatagramOptions& options);

  std::unique_ptr<Datagrams> attach(int rank);

  // Delivers the next datagram, moving time to its arrival; false if none is under way.
  bool advance();
  // Delivers all datagrams due until `now_ns`, and moves time there.
  void advance_to(std::int64_t now_ns);
  std::int64_t now_ns() const { return now_ns_; }
  // When the next datagram arrives; far in the future if none is under way.
  std::int64_t next_arrival_ns() const;

  // Nothing passes between two ranks, in either direction, until it is mended.
  void cut(int left, int right) { set_cut(left, right, true); }
  void mend(int left, int right) { set_cut(left, right, false); }
  // The same for one direction only: datagrams from `target` to `source` still pass.
  void cut_one_way(int source, int target) { cut_[link(source, target)] = true; }
  // From now on longer datagrams between two ranks vanish, both ways: the path is narrower than the
  // interfaces say, and no error is reported. 0: all pass.
  void narrow(int left, int right, std::size_t bytes) {
    narrow_one_way(left, right, bytes);
    narrow_one_way(right, left, bytes);
  }
  void narrow_one_way(int source, int target, std::size_t bytes) {
    most_bytes_[link(source, target)] = bytes;
  }
  // The rank neither sends nor receives any more.
  void kill(int rank) { dead_[static_cast<std::size_t>(rank)] = true; }
  // Loses the next datagrams from one rank to another, whatever the seed says.
  void lose_next(int source, int target, int datagrams) { doom_[link(source, target)] = datagrams; }
  void set_loss(double loss) { options_.loss = loss; }
  // From now on the network does not carry the multicasts of one rank to another. All other
  // datagrams pass as before.
  void stop_multicast(int source, int target) { stopped_[link(source, target)] = true; }
  // The same between all ranks.
  void stop_multicast() { stopped_.assign(stopped_.size(), true); }

  std::int64_t sent() const { return sent_; }  // a datagram to the group is one
  std::int64_t delivered() const { return delivered_; }
  std::int64_t lost() const { return lost_; }

 private:
  friend class VirtualDatagrams;

  struct Message {
    std::int64_t arrival_ns;
    std::int64_t number;  // ties go by age, so a run is the same everywhere
    int target;
    std::vector<std::byte> bytes;
  };
  struct Later {
    bool operator()(const Message& a, const Message& b) const {
      return a.arrival_ns != b.arrival_ns ? a.arrival_ns > b.arrival_ns : a.number > b.number;
    }
  };

  std::size_t link(int source, int target) const {
    return static_cast<std::size_t>(source) * static_cast<std::size_t>(ranks_) +
           static_cast<std::size_t>(target);
  }
  void set_cut(int left, int right, bool value);
  void send(int source, const Outgoing& datagram);
  void send_to(int source, int target, const std::vector<std::byte>& bytes);
  bool is_lost(int source, int target, std::size_t bytes);
  bool carries(int source, int target) const { return !stopped_[link(source, target)]; }

  int ranks_;
  VirtualDatagramOptions options_;
  DatagramLimits limits_;
  base::Prng prng_;
  std::int64_t now_ns_ = 0;
  std::int64_t number_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t delivered_ = 0;
  std::int64_t lost_ = 0;
  std::vector<std::int64_t> last_arrival_ns_;  // by link
  std::vector<bool> cut_;                      // by link
  std::vector<bool> stopped_;                  // by link: multicasts are lost
  std::vector<int> doom_;                      // by link: datagrams that will be lost
  std::vector<std::size_t> most_bytes_;        // by link: longest datagram that passes; 0: all
  std::vector<bool> dead_;
  std::vector<std::deque<std::vector<std::byte>>> inboxes_;
  std::priority_queue<Message, std::vector<Message>, Later> queue_;
};

}  // namespace unisono::transport

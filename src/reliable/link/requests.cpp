// SPDX-License-Identifier: BSD-3-Clause
#include "reliable/link/requests.hpp"

namespace unisono::reliable {

void Requests::await(int rank) {
  Link& link = links_.of(rank);
  link.receiving.awaited = true;
  if (link.receiving.lack.runs()) return;
  link.receiving.lack.start(context_.now_ns, context_.options.await, context_.prng);
  links_.watch(link, rank);
}

// A waiting rank begins to count anew. A gap has its own time, which other arrivals do not put off.
void Requests::note_arrival(Link& link, int rank, bool moved) {
  ReceivingSide& receiving = link.receiving;
  receiving.awaited = false;
  const bool gap = receiving.arrivals.has_gap();
  if (gap && receiving.lacks_gap && !moved) return;
  receiving.lack.stop();
  receiving.lacks_gap = gap;
  if (!gap) return;
  receiving.lack.start(context_.now_ns, context_.options.gap, context_.prng);
  links_.watch(link, rank);
}

void Requests::expect_until(Link& link, int rank, std::uint64_t end) {
  link.receiving.arrivals.expect_until(end);
  if (link.receiving.arrivals.has_gap() && !link.receiving.lacks_gap) {
    note_arrival(link, rank, true);
  }
}

bool Requests::look_at_timer(Link& link, int rank) {
  ++context_.counts.looked_at;
  ReceivingSide& receiving = link.receiving;
  if (!receiving.lack.is_due(context_.now_ns)) return receiving.lack.runs();
  const bool gap = receiving.arrivals.has_gap();
  const bool nobody_answers = link.ended;
  if (nobody_answers || (!gap && !receiving.awaited)) {
    receiving.lack.stop();
    return false;
  }
  ask(link, rank);
  receiving.awaited = false;  // a rank that still waits says so again
  const ReliableOptions& options = context_.options;
  receiving.lack.again(context_.now_ns, gap ? options.gap : options.await, context_.prng);
  return true;
}

// One request for each 64 numbers in which something is missing. The last one includes what may
// follow, because the end of what was sent is not known here.
void Requests::ask(Link& link, int rank) {
  const Arrivals& arrivals = link.receiving.arrivals;
  std::uint64_t from = arrivals.missing();
  do {
    wire::Header header =
        context_.filter.header(wire::Kind::nack, static_cast<std::uint32_t>(rank), 0);
    header.place = from;
    header.value = arrivals.mask(from);
    header.flag = 0;
    // Only the first one says that all before has come.
    header.hop = from == arrivals.missing() ? 0 : 1;
    if (header.value != 0) {
      control_.send(rank, header);
      ++context_.counts.nacks;
    }
    from += kMaskNumbers;
  } while (wire::is_before(from, arrivals.end()));
  link.receiving.told = arrivals.missing();
}

}  // namespace unisono::reliable

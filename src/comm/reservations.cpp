// SPDX-License-Identifier: BSD-3-Clause
#include "comm/reservations.hpp"

namespace unisono::comm {

void Reservations::take(Reservation& reservation, Use use) const {
  const std::int64_t offset = reservation.offset.exchange(0, std::memory_order_acq_rel);
  if (offset == 0) return;
  const std::int64_t bytes = reservation.bytes.load(std::memory_order_relaxed);
  memory::JobMemory& memory = members_.job().memory();
  use == Use::by_nobody ? memory.release(offset, bytes) : memory.empty(offset, bytes);
}

void Reservations::give_up(std::uint64_t number) const {
  segment_.records()[members_.rank()].given_up.store(number, std::memory_order_release);
}

// A member that is stopped or silent may go on at any time; only a dead one does not.
bool Reservations::have_all_given_up(std::uint64_t number) const {
  for (const int r : members_.here()) {
    if (members_.state(r) == job::RankState::dead) continue;
    if (segment_.records()[r].given_up.load(std::memory_order_acquire) != number) return false;
  }
  return true;
}

void Reservations::give_back_failed() const {
  const Use use = members_.on_one_host() ? Use::by_nobody : Use::by_other_hosts;
  for (const int r : members_.here()) {
    Reservation& reservation = segment_.records()[r].reservation;
    if (reservation.offset.load(std::memory_order_acquire) == 0) continue;
    if (have_all_given_up(reservation.number.load(std::memory_order_relaxed))) {
      take(reservation, use);
    }
  }
}

void Reservations::give_back_unused(std::int64_t decided_offset) const {
  for (const int r : members_.here()) {
    if (members_.state(r) != job::RankState::dead) continue;
    Reservation& reservation = segment_.records()[r].reservation;
    const std::int64_t offset = reservation.offset.load(std::memory_order_acquire);
    const bool is_of_shrink = reservation.number.load(std::memory_order_relaxed) == kOfShrink;
    if (is_of_shrink && offset != decided_offset) take(reservation, Use::by_nobody);
  }
}

}  // namespace unisono::comm

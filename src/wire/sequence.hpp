// SPDX-License-Identifier: BSD-3-Clause
// Sequence numbers of packets, which wrap, and the replay window that finds repetitions. A number
// is "before" another if the way up to it is shorter than half of the circle (serial arithmetic,
// RFC 1982), so a link may start anywhere. A ReplayWindow remembers which of the last N numbers
// have arrived; every number below it counts as seen. Value types; one thread at a time.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace unisono::wire {

// Steps from `from` up to `to`; negative if `to` is before `from`.
template <std::unsigned_integral Number>
constexpr std::make_signed_t<Number> distance(Number from, Number to) {
  return static_cast<std::make_signed_t<Number>>(static_cast<Number>(to - from));
}

template <std::unsigned_integral Number>
constexpr bool is_before(Number left, Number right) {
  return distance(left, right) > 0;
}

enum class Freshness : std::uint8_t {
  fresh,  // not seen before; take() has recorded it
  seen,
  old,  // too far below the highest to know
};

// `kNumbers`: how many later packets may overtake a packet that is still told from a repetition.
template <std::unsigned_integral Number, std::size_t kNumbers>
class ReplayWindow {
  static_assert(kNumbers >= 64 && (kNumbers & (kNumbers - 1)) == 0, "a power of two");

 public:
  static constexpr std::size_t size() { return kNumbers; }

  Freshness look(Number sequence) const {
    if (!begun_) return Freshness::fresh;
    const auto ahead = distance(highest_, sequence);
    if (ahead > 0) return Freshness::fresh;
    if (behind(sequence) >= kNumbers) return Freshness::old;
    return bit_is_set(sequence) ? Freshness::seen : Freshness::fresh;
  }

  // Records a number. The packet must be proved genuine first, because the call moves the window.
  Freshness take(Number sequence) {
    const Freshness arrival = look(sequence);
    if (arrival != Freshness::fresh) return arrival;
    if (!begun_ || is_before(highest_, sequence)) advance_to(sequence);
    set_bit(sequence);
    return arrival;
  }

  bool begun() const { return begun_; }
  Number highest() const { return highest_; }  // valid once a number has been taken

 private:
  static constexpr std::size_t kWords = kNumbers / 64;

  std::size_t behind(Number sequence) const {
    return static_cast<std::size_t>(static_cast<Number>(highest_ - sequence));
  }
  static std::size_t word_of(Number sequence) {
    return static_cast<std::size_t>(sequence / 64) % kWords;
  }
  static std::uint64_t mask_of(Number sequence) {
    return std::uint64_t{1} << static_cast<unsigned>(sequence % 64);
  }
  bool bit_is_set(Number sequence) const {
    return (bits_[word_of(sequence)] & mask_of(sequence)) != 0;
  }
  void set_bit(Number sequence) { bits_[word_of(sequence)] |= mask_of(sequence); }

  // The numbers between the old and the new highest have not come.
  void advance_to(Number sequence) {
    const auto steps = static_cast<Number>(sequence - highest_);
    if (!begun_ || steps >= kNumbers) {
      bits_.fill(0);
    } else {
      for (Number i = 1; i <= steps; ++i) {
        const auto number = static_cast<Number>(highest_ + i);
        bits_[word_of(number)] &= ~mask_of(number);
      }
    }
    begun_ = true;
    highest_ = sequence;
  }

  std::array<std::uint64_t, kWords> bits_{};
  Number highest_ = 0;
  bool begun_ = false;
};

}  // namespace unisono::wire

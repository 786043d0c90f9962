// SPDX-License-Identifier: BSD-3-Clause
// What the machine allows for a long message between two processes of a host, without the library.
// Two processes on the first two usable cores move the same message in several ways, and the
// program prints the median time of each. It also prints how long a cache line takes from core to
// core and back, before and after each row, because virtual cores may be moved meanwhile.
//
//   build/release/bench/message_ways 20
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "micro/own_cores.hpp"

namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::array kSizes = {kMostBytes >> 8, kMostBytes >> 6, kMostBytes >> 5,
                               kMostBytes >> 4, kMostBytes >> 2, kMostBytes};
constexpr int kMessages = 100;  // of each way in a row: pieces are used again several times
constexpr std::uint64_t kMostPieces = 32;

// copy: through pieces of shared memory, by memcpy on both sides. stream: the same, but the sender
// stores past its caches. refer: one memcpy out of shared memory. kernel: one process_vm_readv.
enum class Means : std::uint8_t { copy, stream, refer, kernel };
struct Way {
  const char* name;
  Means means;
  std::size_t piece_bytes;  // copy and stream only, as is the next one
  std::uint64_t pieces;     // so many before the first one is used again
};
constexpr std::array kWays = {
    Way{"copy, 8 x 32K", Means::copy, 32 << 10, 8},
    Way{"copy, 32 x 32K", Means::copy, 32 << 10, 32},
    Way{"copy, 8 x 128K", Means::copy, 128 << 10, 8},
    Way{"copy, 16 x 128K", Means::copy, 128 << 10, 16},
    Way{"copy, 32 x 128K", Means::copy, 128 << 10, 32},
    Way{"stream, 8 x 32K", Means::stream, 32 << 10, 8},
    Way{"stream, 8 x 128K", Means::stream, 128 << 10, 8},
    Way{"kernel", Means::kernel, 0, 0},
    Way{"refer", Means::refer, 0, 0},
};

struct alignas(128) Word {
  std::atomic<std::uint64_t> value;
};
struct Shared {
  std::array<Word, 2> turns, barriers, filled, emptied;
  std::array<std::uint64_t, 2> sources;  // addresses
  std::array<pid_t, 2> processes;
  alignas(128) std::array<std::int64_t, 2> begin_ns, end_ns;
};

void await(const Word& word, std::uint64_t least) {
  while (word.value.load(std::memory_order_acquire) < least) {
  }
}
void raise(Word& word, std::uint64_t value) { word.value.store(value, std::memory_order_release); }

// A multiple of 64 bytes to an aligned target.
void put(Means means, std::byte* target, const std::byte* source, std::size_t bytes) {
#if defined(__x86_64__)
  if (means == Means::stream) {
    for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i)));
    }
    _mm_sfence();
    return;
  }
#else
  (void)means;
#endif
  std::memcpy(target, source, bytes);
}

// One of the two processes.
class Side {
 public:
  Side(Shared& shared, std::size_t number, std::byte* memory)
      : shared_(shared),
        own_(number),
        peer_(1 - number),
        memory_(memory),
        input_(kMostBytes, std::byte{1}),
        output_(kMostBytes) {
    shared.processes[own_] = getpid();
    shared.sources[own_] = reinterpret_cast<std::uint64_t>(input_.data());
  }

  void meet() {
    raise(shared_.barriers[own_], ++barriers_);
    await(shared_.barriers[peer_], barriers_);
  }

  // The least of many batches: in the others a process may have lost its core.
  double round_trip_ns() {
    constexpr int kBatches = 20, kTrips = 100;
    std::int64_t least = INT64_MAX;
    for (int batch = 0; batch < kBatches; ++batch) {
      meet();
      const std::int64_t begin = unisono::base::now_ns();
      for (int trip = 0; trip < kTrips; ++trip) {
        ++turn_;
        if (own_ == 1) await(shared_.turns[0], turn_);
        raise(shared_.turns[own_], turn_);
        if (own_ == 0) await(shared_.turns[1], turn_);
      }
      least = std::min(least, unisono::base::now_ns() - begin);
    }
    return static_cast<double>(least) / kTrips;
  }

  // Both: a message each at the same time. The median of the times in which both had ended.
  double message_us(const Way& way, std::size_t bytes, bool both, bool rewrites) {
    std::vector<std::int64_t> times;
    for (int i = 0; i < kMessages; ++i) {
      if (rewrites) rewrite(way.means == Means::refer ? source_of(own_) : input_.data(), bytes);
      meet();
      meet();
      shared_.begin_ns[own_] = unisono::base::now_ns();
      move(way, bytes, both || own_ == 0, both || own_ == 1);
      shared_.end_ns[own_] = unisono::base::now_ns();
      meet();
      times.push_back(std::ranges::max(shared_.end_ns) - std::ranges::min(shared_.begin_ns));
    }
    meet();
    std::ranges::nth_element(times, times.begin() + kMessages / 2);
    return static_cast<double>(times[kMessages / 2]) * 1e-3;
  }

 private:
  std::byte* pieces_of(std::size_t side) const { return memory_ + 2 * side * kMostBytes; }
  std::byte* source_of(std::size_t side) const { return pieces_of(side) + kMostBytes; }

  // A byte of each cache line, so that the receiver has none of them.
  static void rewrite(std::byte* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) data[i] ^= std::byte{1};
  }

  void move(const Way& way, std::size_t bytes, bool sends, bool receives) {
    if (way.piece_bytes != 0) return copy(way, bytes, sends, receives);

    if (sends) raise(shared_.filled[own_], ++sent_);
    if (receives) {
      await(shared_.filled[peer_], ++received_);
      fetch(way.means, bytes);
      raise(shared_.emptied[peer_], received_);
    }
    if (sends) await(shared_.emptied[own_], sent_);
  }

  void fetch(Means means, std::size_t bytes) {
    if (means == Means::refer) {
      std::memcpy(output_.data(), source_of(peer_), bytes);
      return;
    }
    const iovec local{output_.data(), bytes};
    const iovec remote{reinterpret_cast<void*>(shared_.sources[peer_]), bytes};
    const ssize_t read = process_vm_readv(shared_.processes[peer_], &local, 1, &remote, 1, 0);
    if (read == static_cast<ssize_t>(bytes)) return;
    std::perror("message_ways: process_vm_readv");
    kill(shared_.processes[peer_], SIGKILL);
    _exit(1);
  }

  void copy(const Way& way, std::size_t bytes, bool sends, bool receives) {
    std::size_t in = sends ? 0 : bytes, out = receives ? 0 : bytes;
    while (in < bytes || out < bytes) {
      const std::uint64_t emptied = shared_.emptied[own_].value.load(std::memory_order_acquire);
      if (in < bytes && sent_ < emptied + way.pieces) {
        const std::size_t piece = std::min(way.piece_bytes, bytes - in);
        put(way.means, pieces_of(own_) + sent_ % way.pieces * way.piece_bytes, input_.data() + in,
            piece);
        in += piece;
        raise(shared_.filled[own_], ++sent_);
      }
      if (out < bytes && shared_.filled[peer_].value.load(std::memory_order_acquire) > received_) {
        const std::size_t piece = std::min(way.piece_bytes, bytes - out);
        std::memcpy(output_.data() + out,
                    pieces_of(peer_) + received_ % way.pieces * way.piece_bytes, piece);
        out += piece;
        raise(shared_.emptied[peer_], ++received_);
      }
    }
  }

  Shared& shared_;
  std::size_t own_, peer_;
  std::byte* memory_;
  std::vector<std::byte> input_, output_;
  std::uint64_t barriers_ = 0, turn_ = 0, sent_ = 0, received_ = 0;
};

void print_rows(Side& side, bool prints, bool both, bool rewrites) {
  for (const std::size_t bytes : kSizes) {
    const double before = side.round_trip_ns();
    std::array<double, kWays.size()> us{};
    for (std::size_t i = 0; i < kWays.size(); ++i) {
      us[i] = side.message_us(kWays[i], bytes, both, rewrites);
    }
    const double after = side.round_trip_ns();
    if (!prints) continue;
    std::printf("%-4s %-9s %6zu %7.0f %6.0f", both ? "both" : "one",
                rewrites ? "rewritten" : "unchanged", bytes >> 10, before, after);
    for (const double time : us) std::printf(" %15.1f", time);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view text = argc == 2 ? argv[1] : "";
  int rounds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
  const std::vector<int> cores = unisono::bench::own_cores();
  if (error != std::errc() || end != text.data() + text.size() || rounds < 1 || cores.size() < 2) {
    std::fprintf(stderr, "usage: message_ways ROUNDS (on two cores or more)\n");
    return 2;
  }
  constexpr std::size_t kMemory = 4 * kMostBytes + sizeof(Shared);
  void* const memory =
      mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* const bytes = static_cast<std::byte*>(memory);
  std::fill_n(bytes, kMemory, std::byte{0});
  auto& shared = *new (bytes + 4 * kMostBytes) Shared{};
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) _exit(1);
  // Where the kernel lets only ancestors read a process. Elsewhere there is nothing to allow.
  if (child > 0) (void)prctl(PR_SET_PTRACER, child);
  const std::size_t number = child == 0 ? 1 : 0;
  unisono::bench::pin_to(cores[number]);
  Side side(shared, number, bytes);
  if (number == 0) {
    std::printf("# message, source, KiB, round trip before and after (ns); us by each way:\n#%36s",
                "");
    for (const Way& way : kWays) std::printf(" %15s", way.name);
    std::printf("\n");
  }
  for (int round = 0; round < rounds; ++round) {
    for (const bool both : {false, true}) {
      for (const bool rewrites : {false, true}) print_rows(side, number == 0, both, rewrites);
    }
  }
  if (child == 0) _exit(0);
  return waitpid(child, nullptr, 0) == child ? 0 : 1;
}

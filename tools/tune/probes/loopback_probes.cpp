// SPDX-License-Identifier: BSD-3-Clause
#include "tune/probes/loopback_probes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace unisono::tools::tune {
namespace {

constexpr int kLargest = 1400;
constexpr int kQueued = 32;  // datagrams that a socket's buffer surely holds

struct Socket {
  base::Descriptor descriptor;
  sockaddr_in address{};
};

base::Result<Socket> open_socket() {
  Socket result;
  result.descriptor.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  result.address.sin_family = AF_INET;
  result.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof result.address;
  auto* address = reinterpret_cast<sockaddr*>(&result.address);
  // A datagram that the kernel drops must not stop the probe.
  const timeval limit{.tv_sec = 0, .tv_usec = 200'000};
  const int number = result.descriptor.get();
  if (!result.descriptor.valid() || ::bind(number, address, length) != 0 ||
      ::getsockname(number, address, &length) != 0 ||
      ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
    return base::system_error("a socket on the loopback interface", errno);
  }
  return result;
}

class Ends {
 public:
  Ends(Socket a, Socket b, int bytes)
      : a_(std::move(a)), b_(std::move(b)), bytes_(static_cast<std::size_t>(bytes)) {}

  void send(const Socket& from, const Socket& to, std::size_t bytes) {
    ::sendto(from.descriptor.get(), data_.data(), bytes, 0,
             reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address);
  }
  static ssize_t receive(const Socket& at, int flags) {
    std::array<char, kLargest> data;
    return ::recv(at.descriptor.get(), data.data(), data.size(), flags);
  }
  Sample flight(std::int64_t budget_ns) {
    // An empty datagram ends the partner.
    std::thread partner([this] {
      for (;;) {
        const ssize_t got = receive(b_, 0);
        if (got == 0) return;
        if (got > 0) send(b_, a_, bytes_);
      }
    });
    const Sample whole = sample(budget_ns, [this](std::int64_t calls) {
      for (std::int64_t i = 0; i < calls; ++i) {
        send(a_, b_, bytes_);
        receive(a_, 0);
      }
    });
    send(a_, b_, 0);
    partner.join();
    return {whole.ns / 2, whole.plus_minus / 2};
  }
  // Sends some, then receives them, and times both apart.
  void apart(std::int64_t budget_ns, DatagramTimes& times) {
    std::array<double, kBatches> sent{}, received{};
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
      std::int64_t send_ns = 0, receive_ns = 0, count = 0;
      while (send_ns + receive_ns < budget_ns / kBatches) {
        const std::int64_t begin = base::now_ns();
        for (int i = 0; i < kQueued; ++i) send(a_, b_, bytes_);
        const std::int64_t middle = base::now_ns();
        for (int i = 0; i < kQueued; ++i) receive(b_, 0);
        receive_ns += base::now_ns() - middle;
        send_ns += middle - begin;
        count += kQueued;
      }
      sent[batch] = static_cast<double>(send_ns) / static_cast<double>(count);
      received[batch] = static_cast<double>(receive_ns) / static_cast<double>(count);
    }
    times.sending = summary(sent);
    times.receiving = summary(received);
  }

 private:
  Socket a_, b_;
  std::size_t bytes_;
  std::array<char, kLargest> data_{};
};

}  // namespace

base::Result<DatagramTimes> datagrams(int bytes, std::int64_t budget_ns) {
  Socket a, b;
  UNISONO_ASSIGN(a, open_socket());
  UNISONO_ASSIGN(b, open_socket());
  Ends ends(std::move(a), std::move(b), bytes);
  DatagramTimes times;
  times.flight = ends.flight(budget_ns);
  ends.apart(budget_ns, times);
  return times;
}

}  // namespace unisono::tools::tune

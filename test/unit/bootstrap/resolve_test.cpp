// SPDX-License-Identifier: BSD-3-Clause
// bootstrap/socket: resolve() with a name service of this test's own. getaddrinfo() below takes the
// place of the system's in this program, so that no question leaves the machine.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/socket.hpp"
#include "unit/bootstrap/served_rendezvous.hpp"

namespace {

constexpr std::string_view kSilentName = "silent.test";
constexpr std::string_view kLoopbackName = "loopback.test";

// A service that does not answer for kSilentName until it is released.
class NameService {
 public:
  int ask(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
    using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
    const bool numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (host == nullptr || numeric) return real(host, service, hints, found);
    if (host == kLoopbackName) {
      ++questions_;
      return real("127.0.0.1", service, hints, found);
    }
    if (host != kSilentName) return EAI_NONAME;
    std::unique_lock lock(mutex_);
    ++waiting_;
    // Longer than the test waits, so that a resolve() without a limit fails the test and no more.
    changed_.wait_for(lock, std::chrono::seconds(30), [this] { return released_; });
    --waiting_;
    changed_.notify_all();
    return EAI_AGAIN;
  }
  // Ends the threads that have been left behind.
  void release() {
    std::unique_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return waiting_ == 0; });
  }
  int questions() const { return questions_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool released_ = false;
  std::atomic<int> questions_ = 0;
};

NameService& name_service() {
  static NameService service;
  return service;
}

}  // namespace

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  return name_service().ask(host, service, hints, found);
}

namespace unisono::bootstrap::resolve_test {
namespace {

using base::Code;

TEST(Resolve, ANumericAddressNeedsNoNameService) {
  for (const std::string text : {"tcp:127.0.0.1:7000", "tcp:[::1]:7000", "unix:@name"}) {
    Address address = *parse_address(text);
    EXPECT_TRUE(resolve(address, 0).ok()) << text;
    EXPECT_EQ(address_text(address), text);
  }
}

TEST(Resolve, ANameKeepsItsText) {
  Address address = *parse_address("tcp:loopback.test:7000");
  ASSERT_TRUE(resolve(address, 60 * base::kSecond).ok());
  EXPECT_EQ(address_text(address), "tcp:loopback.test:7000");
  EXPECT_EQ(transport::ip_text(*ip_of(address)), "127.0.0.1");
}

TEST(Resolve, AnUnknownNameIsAnError) {
  Address address = *parse_address("tcp:no-such-host.test:7000");
  const auto status = resolve(address, 60 * base::kSecond);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::argument);
  EXPECT_NE(status.error().message.find("host \"no-such-host.test\" is not known"),
            std::string::npos);
}

TEST(Resolve, EachRankAsksForTheAddressOnce) {
  const int before = name_service().questions();
  test::Host host(2, "60s", "tcp:127.0.0.1:0");
  host.serve();
  std::vector<JobDescription> jobs{host.job(0, 2), host.job(1, 2)};
  for (JobDescription& job : jobs) job.address.name = kLoopbackName;
  for (const auto& info : test::join_all(jobs, test::settings_with("60s"))) {
    EXPECT_TRUE(info.ok()) << info.error().message;
  }
  EXPECT_EQ(name_service().questions() - before, 2);
}

TEST(Resolve, ANameServiceThatDoesNotAnswerIsATimeout) {
  JobDescription job;
  job.rank = 1;
  job.ranks = 2;
  job.address = *parse_address("tcp:silent.test:7000");
  job.address_given = true;
  job.key = test::kKey;
  test::expect_error(join(job, test::settings_with("50ms")), Code::timeout,
                     "rank 1 of 2: UNISONO_RENDEZVOUS: the name service gave no address of host "
                     "\"silent.test\" within 50ms (UNISONO_START_TIMEOUT)");
  name_service().release();
}

}  // namespace
}  // namespace unisono::bootstrap::resolve_test

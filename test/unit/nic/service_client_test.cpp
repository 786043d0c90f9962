// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <string>

#include "base/descriptor.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::nic::service_client_test {
namespace {

// A daemon as far as its socket.
class FakeDaemon {
 public:
  FakeDaemon() : listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
  }
  ~FakeDaemon() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

  // To a client that has asked, without reading its question.
  void refuse(const std::string& why) {
    const base::Descriptor client(accept(listener_.get(), nullptr, nullptr));
    pollfd asked = {client.get(), POLLIN, 0};
    EXPECT_EQ(poll(&asked, 1, -1), 1);
    const auto bytes = encode(Refused{base::Code::resources, why});
    EXPECT_EQ(send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Answers the question once `meanwhile` is over.
  void describe(const std::function<void()>& meanwhile) {
    const base::Descriptor client(accept(listener_.get(), nullptr, nullptr));
    std::array<std::byte, kLongestMessage> question;
    EXPECT_GT(recv(client.get(), question.data(), question.size(), 0), 0);
    meanwhile();
    Served served;
    served.interface = "eth7";
    const auto bytes = encode(served);
    EXPECT_EQ(send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("unisono-fake-daemon-" + std::to_string(getpid()) + ".sock");
  base::Descriptor listener_;
};

// While it lives, the thread and those that it starts are on one core.
class OneCore {
 public:
  OneCore() {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCore() { EXPECT_EQ(sched_setaffinity(0, sizeof before_, &before_), 0); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

// The daemon has refused and closed before the client, which gives way to it, listens.
TEST(ServiceClient, HearsARefusalThatCameBeforeItsQuestionWasRead) {
  FakeDaemon daemon;
  const OneCore both;
  auto served = std::async(std::launch::async, [&daemon]() -> base::Result<Served> {
    const sched_param none = {};
    EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    UNISONO_ASSIGN(const auto client, ServiceClient::connect(daemon.path()));
    return client->describe();
  });
  daemon.refuse("no room for more");
  const auto answer = served.get();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, base::Code::resources);
  EXPECT_EQ(answer.error().message, "no room for more");
}

std::atomic<int> handled = 0;

// An application has a timer, or a profiler.
TEST(ServiceClient, WaitsForItsAnswerThroughSignals) {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { handled.fetch_add(1); };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  FakeDaemon daemon;
  const pthread_t client_thread = pthread_self();
  auto serving = std::async(std::launch::async, [&] {
    daemon.describe([&] {
      for (int signals = 1; signals <= 50; ++signals) {
        EXPECT_EQ(pthread_kill(client_thread, SIGUSR1), 0);
        while (handled.load() < signals) sched_yield();
      }
    });
  });
  const auto client = ServiceClient::connect(daemon.path());
  ASSERT_TRUE(client.ok()) << client.error().message;
  const auto served = (*client)->describe();
  serving.get();
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(served.ok()) << served.error().message;
  EXPECT_EQ(served->interface, "eth7");
}

}  // namespace
}  // namespace unisono::nic::service_client_test

// SPDX-License-Identifier: BSD-3-Clause
#include "nic/service/client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>

#include "base/descriptor.hpp"
#include "nic/service/protocol.hpp"

namespace unisono::nic {
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

  // To whoever has asked for something, which it does not read.
  void refuse(const std::string& why) {
    const base::Descriptor client(accept(listener_.get(), nullptr, nullptr));
    pollfd asked = {client.get(), POLLIN, 0};
    EXPECT_EQ(poll(&asked, 1, -1), 1);
    const auto bytes = encode(Refused{base::Code::resources, why});
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

}  // namespace
}  // namespace unisono::nic

// SPDX-License-Identifier: BSD-3-Clause
// For tests of a launcher's key-value store: a launcher that speaks PMI like hydra.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "bootstrap/launchers/pmi_line.hpp"
#include "bootstrap/launchers/stores.hpp"

namespace unisono::bootstrap::test {

// A launcher with a connection to each rank; serves until all ranks have closed theirs.
class FakeLauncher {
 public:
  // Replaces the value that is stored under a key when a rank puts one.
  using Change = std::function<std::string(const std::string& key, const std::string& value)>;

  explicit FakeLauncher(int ranks, Change change = {}) : change_(std::move(change)) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::array<int, 2> ends{};
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
      own_.emplace_back(ends[0]);
      theirs_.emplace_back(ends[1]);
    }
    server_ = std::thread([this] { serve(); });
  }
  ~FakeLauncher() {
    theirs_.clear();
    server_.join();
  }

  StoreOptions options(int rank) const {
    return {.kind = StoreKind::pmi,
            .descriptor = theirs_[static_cast<std::size_t>(rank)].get(),
            .rank = rank,
            .ranks = static_cast<int>(theirs_.size()),
            .timeout_ns = 20 * base::kSecond};
  }
  // All values that ranks have put; to be called when the ranks are done.
  const std::map<std::string, std::string>& values() const { return values_; }
  void hang_up(int rank) { theirs_[static_cast<std::size_t>(rank)].reset(); }
  int finalized() const { return finalized_; }  // how many ranks; to be called when they are done

 private:
  void serve() {
    std::vector<pollfd> waiting;
    for (const base::Descriptor& one : own_) waiting.push_back({one.get(), POLLIN, 0});
    std::size_t open = waiting.size();
    while (open > 0) {
      ASSERT_GT(poll(waiting.data(), waiting.size(), -1), 0);
      for (pollfd& one : waiting) {
        if (one.revents == 0) continue;
        std::array<char, 4096> bytes{};
        const ssize_t count = recv(one.fd, bytes.data(), bytes.size(), 0);
        if (count > 0) {
          answer(one.fd, std::string(bytes.data(), static_cast<std::size_t>(count)));
        } else {
          one.fd = -1;
          --open;
        }
      }
    }
  }

  void answer(int rank, const std::string& text) {
    const auto line = parse_pmi_line(text.substr(0, text.size() - 1));
    ASSERT_TRUE(line.ok());
    const std::string key(line->value("key"));
    if (line->command == "init") say(rank, "cmd=response_to_init rc=0 pmi_version=1\n");
    if (line->command == "get_my_kvsname") say(rank, "cmd=my_kvsname kvsname=kvs_1_0\n");
    if (line->command == "put") {
      EXPECT_EQ(line->value("kvsname"), "kvs_1_0");
      const std::string value(line->value("value"));
      values_[key] = change_ ? change_(key, value) : value;
      say(rank, "cmd=put_result rc=0 msg=success\n");
    }
    if (line->command == "barrier_in") {
      waiting_.push_back(rank);
      if (waiting_.size() == own_.size()) {
        for (const int each : std::exchange(waiting_, {})) say(each, "cmd=barrier_out\n");
      }
    }
    if (line->command == "get") {
      const auto found = values_.find(key);
      say(rank, found == values_.end() ? std::string("cmd=get_result rc=-1 msg=key_") + key +
                                             "_not_found value=unknown\n"
                                       : "cmd=get_result rc=0 value=" + found->second + "\n");
    }
    if (line->command == "finalize") {
      ++finalized_;
      say(rank, "cmd=finalize_ack\n");
    }
  }

  static void say(int rank, const std::string& line) {
    // In two pieces, since a stream may deliver them so.
    EXPECT_EQ(send(rank, line.data(), 3, MSG_NOSIGNAL), 3);
    EXPECT_EQ(send(rank, line.data() + 3, line.size() - 3, MSG_NOSIGNAL),
              static_cast<ssize_t>(line.size() - 3));
  }

  std::vector<base::Descriptor> own_, theirs_;
  Change change_;
  std::map<std::string, std::string> values_;
  std::vector<int> waiting_;
  int finalized_ = 0;
  std::thread server_;
};

}  // namespace unisono::bootstrap::test

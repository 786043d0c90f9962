// SPDX-License-Identifier: BSD-3-Clause
// Channel: messages from one rank to another, in their order. The two ranks make a job of their own
// for it at the first message; each message is two broadcasts of the sender, its header and its
// elements. A thread of the channel does them, so that messages wait for no collective. A message
// goes to the first receive of its tag, in whatever order tags are sent and received. Channels:
// those of one rank.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "caller_stream.hpp"
#include "collectives.hpp"
#include "group.hpp"
#include "own_process.hpp"
#include "tensors.hpp"
#include "work.hpp"

namespace unisono::pytorch {

// One receive. It ends once, by the thread that has its message or its error.
struct Receipt {
  Flat values;
  std::int64_t tag;
  CallerStream stream;
  c10::intrusive_ptr<QueuedWork> work;  // null: of a receive from any rank, which has its own
  bool has_ended = false;
  std::exception_ptr error = nullptr;

  void end(std::exception_ptr why);
};

class Channel {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // A message of at most this length is copied, and its send is complete at once, as with Gloo's
  // sockets. Ranks may so send to each other before they receive.
  static constexpr std::int64_t kBufferedBytes = 64 * 1024;

  Channel(c10::intrusive_ptr<c10d::Store> store, int source, int target, int rank);
  ~Channel() { abort(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  c10::intrusive_ptr<c10d::Work> send(const Tensor& tensor, int tag, Milliseconds timeout);
  c10::intrusive_ptr<c10d::Work> receive(const Tensor& tensor, int tag, Milliseconds timeout);
  // Takes a message if one is there; does not wait for one. True: `receipt` has ended. `store`
  // tells whether the sender has come.
  bool take(Receipt& receipt, Milliseconds timeout, c10d::Store& store);
  void abort() { group_.abort(); }
  // Later messages fail.
  void stop_accepting() { group_.stop_accepting(); }
  // Waits until what was sent has been taken; nobody waits for a receive any more.
  void finish();
  // The names of sends that their receivers have not yet taken.
  std::vector<std::string> names_under_way() const;

 private:
  struct Header {
    std::int64_t tag = 0, bytes = 0;
  };
  struct Message {
    std::int64_t tag;
    std::vector<char> bytes;
  };

  void open(Milliseconds timeout);
  std::string name() const;
  void serve(const std::shared_ptr<Receipt>& receipt, Milliseconds timeout);
  int receive_header(unisono_comm_t comm);
  int has_header(unisono_comm_t comm, bool& has);
  int receive_body(unisono_comm_t comm, Receipt* from_any);
  std::shared_ptr<Receipt> claim(std::int64_t tag, Message* or_keep);
  bool find_early(std::int64_t tag, Message& message);
  bool take_early(Receipt& receipt);
  void put(Receipt& receipt, const Message& message) const;
  static void settle(Receipt& receipt);

  OwnProcess own_process_;
  c10::intrusive_ptr<c10d::Store> store_;
  int source_, target_, rank_;
  std::mutex receiving_;  // by one operation at a time; for the next three and all Receipts
  bool is_open_ = false;
  Header header_;
  unisono_request_t header_request_ = nullptr;  // receives the next header meanwhile
  std::mutex posting_;                          // for the next two: no tag is in both
  std::deque<std::shared_ptr<Receipt>> posted_;
  std::vector<Message> early_;  // that nobody waits for yet
  std::mutex mutex_;
  std::exception_ptr error_;  // of a buffered send; under mutex_
  Group group_;
  WorkQueue queue_;  // the last one: its thread uses the others
};

class Channels {
 public:
  using Milliseconds = Channel::Milliseconds;

  Channels(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
      : store_(std::move(store)), rank_(rank), size_(size) {}

  // This rank is one of the two ends. Throws ValueError.
  Channel& between(int source, int target);
  // From the rank whose message comes first; the work then knows which.
  c10::intrusive_ptr<c10d::Work> receive_any(const Tensor& tensor, int tag, Milliseconds timeout);
  void abort();
  void stop_accepting();
  void finish();
  std::vector<std::string> names_under_way() const;

 private:
  int take_from_any(Receipt& receipt, Milliseconds timeout);
  c10d::Store& probed_store();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_, size_;
  std::atomic<bool> is_ending_ = false;
  c10::intrusive_ptr<c10d::Store> probed_store_;  // of the thread of any_: see probed_store()
  mutable std::mutex mutex_;
  bool is_closing_ = false;  // this one and the next: under mutex_
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> all_;
  WorkQueue any_;  // the last one: its thread uses the others
};

}  // namespace unisono::pytorch

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
#include "store/store_connection.hpp"
#include "tensors.hpp"
#include "work.hpp"

namespace unisono::pytorch {

// One receive. It ends once, by the thread that has its message or its error, which then tells the
// work, without a lock: that runs callbacks.
struct Receipt {
  Flat values;
  std::int64_t tag;
  CallerStream stream;
  c10::intrusive_ptr<QueuedWork> work;
  bool has_ended = false;
  std::exception_ptr error = nullptr;

  void end(std::exception_ptr why);
  void tell() const;
};

class Channel {
 public:
  using Milliseconds = std::chrono::milliseconds;
  // A message of at most this length is copied, and its send is complete at once, as with Gloo's
  // sockets. Ranks may so send to each other before they receive.
  static constexpr std::int64_t kBufferedBytes = 64 * 1024;

  // Both outlive it. `whole` is the group of all ranks, which knows the lost ones.
  Channel(StoreConnection& store, Group& whole, int source, int target, int rank);
  ~Channel() { abort(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  c10::intrusive_ptr<c10d::Work> send(const Tensor& tensor, int tag, Milliseconds timeout);
  c10::intrusive_ptr<c10d::Work> receive(const Tensor& tensor, int tag, Milliseconds timeout);
  using Receipts = std::vector<std::shared_ptr<Receipt>>;
  // Takes a message if one is there; does not wait for one. True: `receipt` has ended. Other
  // receives that have ended are added to `ended`, for the caller to tell.
  bool take(Receipt& receipt, Milliseconds timeout, Receipts& ended);
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

  // One operation at a time holds it, at the receiver.
  class Turn;

  // The limit is that of the operation since its call: those that wait for one end together.
  void open(const Group::Limit& limit);
  c10::intrusive_ptr<c10d::Store> connected();
  const std::string& message() const { return rank_ == source_ ? send_name_ : receive_name_; }
  int peer() const { return rank_ == source_ ? target_ : source_; }
  std::string name() const;
  void serve(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
             const Group::Limit& limit);
  void go_on(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
             const Group::Limit& limit, Receipts& ended);
  void give_up(const std::shared_ptr<Receipt>& receipt);
  bool serve_one(const std::shared_ptr<Receipt>& receipt, const Group::Limit& to_open,
                 const Group::Limit& limit, Receipts& ended);
  int receive_header(unisono_comm_t comm);
  int has_header(unisono_comm_t comm, bool& has);
  int receive_body(unisono_comm_t comm, Receipt* from_any);
  std::shared_ptr<Receipt> claim(std::int64_t tag, Message* or_keep);
  bool find_early(std::int64_t tag, Message& message);
  bool take_early(Receipt& receipt);
  void put(Receipt& receipt, const Message& message) const;
  static void settle(Receipt& receipt);

  OwnProcess own_process_;
  StoreConnection& store_;
  Group& whole_;
  int source_, target_, rank_;
  std::string send_name_, receive_name_;  // of operations, for errors
  std::mutex receiving_;                  // in a Turn; for the next four and all Receipts
  bool is_open_ = false;
  Header header_;
  unisono_request_t header_request_ = nullptr;  // receives the next header meanwhile
  Receipts ended_;                              // that are not told yet
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

  // These outlive it.
  Channels(StoreConnection& store, Group& group, int rank, int size)
      : store_(store), group_(group), rank_(rank), size_(size) {}

  // This rank is one of the two ends. Throws ValueError.
  Channel& between(int source, int target);
  // From the rank whose message comes first; the work then knows which.
  c10::intrusive_ptr<c10d::Work> receive_any(const Tensor& tensor, int tag, Milliseconds timeout);
  void abort();
  void stop_accepting();
  void finish();
  std::vector<std::string> names_under_way() const;

 private:
  // A receive from any rank. Each message is for the first one of its tag.
  struct AnyReceipt {
    std::shared_ptr<Receipt> receipt;
    Milliseconds timeout;
    std::chrono::steady_clock::time_point limit;
  };

  void serve_any(const Receipt& receipt);
  Channel::Receipts look_for_any();
  std::exception_ptr try_to_take(const AnyReceipt& any, Channel::Receipts& ended);

  StoreConnection& store_;
  Group& group_;
  int rank_, size_;
  std::atomic<bool> is_ending_ = false;
  std::mutex looking_;               // for all receipts of waiting_
  std::mutex posting_;               // for the next one
  std::vector<AnyReceipt> waiting_;  // in the order of the calls
  mutable std::mutex mutex_;
  bool is_closing_ = false;  // this one and the next: under mutex_
  std::map<std::pair<int, int>, std::unique_ptr<Channel>> all_;
  WorkQueue any_;  // the last one: its thread uses the others
};

}  // namespace unisono::pytorch

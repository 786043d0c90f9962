// SPDX-License-Identifier: BSD-3-Clause
// FakeRdma: functions of libibverbs over devices in memory, which carry unreliable datagrams: to
// one queue pair, and to all that are attached to a multicast group. As soft-RoCE does, a device
// loses a datagram that finds no posted receive, also gives a sender its own multicasts, and wakes
// by solicited datagrams. One at a time, in one thread. Needs the headers of libibverbs only.
#pragma once

#include <infiniband/verbs.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/descriptor.hpp"
#include "transport/verbs/library.hpp"
#include "transport/verbs/port.hpp"

namespace unisono::transport {

class FakeRdma {
 public:
  // One device at each of the addresses, named fake0 and so on.
  explicit FakeRdma(const std::vector<IpAddress>& addresses) {
    UNISONO_CHECK(current_ == nullptr, "one at a time");
    current_ = this;
    for (const IpAddress& address : addresses) {
      devices_.push_back(std::make_unique<Device>());
      devices_.back()->name = "fake" + std::to_string(devices_.size() - 1);
      devices_.back()->gid = verbs_gid_of(address);
      list_.push_back(devices_.back().get());
    }
    list_.push_back(nullptr);
    limits.max_qp_wr = limits.max_cqe = 16'384;
    limits.max_mcast_grp = limits.max_mcast_qp_attach = 8;
    limits.phys_port_cnt = 1;
  }
  ~FakeRdma() { current_ = nullptr; }
  FakeRdma(const FakeRdma&) = delete;
  FakeRdma& operator=(const FakeRdma&) = delete;

  base::Result<VerbsLibrary> library() const { return functions(); }

  // An event of the devices of that name, as the kernel reports it.
  void raise(const std::string& device, ibv_event_type event) {
    for (Context* each : contexts_) {
      if (each->device_of->name != device) continue;
      each->pending.push_back(event);
      eventfd_write(each->events.get(), 1);
    }
  }
  // The device is removed: its queues carry nothing any more.
  void remove(const std::string& device) {
    for (auto& each : devices_) each->removed |= each->name == device;
    raise(device, IBV_EVENT_DEVICE_FATAL);
  }

  void finish_sends() {
    for (Pair* each : pairs_) finish(*each);
  }

  ibv_device_attr limits{};
  ibv_mtu mtu = IBV_MTU_1024;
  ibv_port_state state = IBV_PORT_ACTIVE;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  bool completes = true;  // false: sends stay under way, until finish_sends()
  bool attaches = true;
  int objects = 0;                        // that were made and not freed
  std::uint64_t solicited = 0;            // datagrams that were sent so
  std::uint64_t without_receive = 0;      // datagrams that were lost because no receive was posted
  std::uint32_t foreign_key = 0;          // datagrams that were lost because of their queue key
  std::size_t least_receives = SIZE_MAX;  // posted at any queue pair when a datagram came

 private:
  struct Device : ibv_device {
    std::string name;
    VerbsGid gid{};
    bool removed = false;
  };
  struct Context : ibv_context {
    Device* device_of = nullptr;
    std::deque<ibv_event_type> pending;
    base::Descriptor events{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  };
  struct Queue;
  struct Channel : ibv_comp_channel {
    std::deque<Queue*> woken;
    base::Descriptor events{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)};
  };
  enum class Notify { none, solicited, any };
  struct Queue : ibv_cq {
    Channel* of = nullptr;
    std::size_t depth = 0;
    Notify notify = Notify::none;
    std::deque<ibv_wc> done;
  };
  struct Pair : ibv_qp {
    Device* device = nullptr;
    Queue* sends = nullptr;
    Queue* receives = nullptr;
    std::uint32_t key = 0;
    std::size_t most_sends = 0, most_receives = 0, under_way = 0;
    std::vector<std::uint64_t> reported;  // sends under way whose end is to be reported
    std::deque<ibv_recv_wr> posted;
    std::deque<ibv_sge> places;
    std::set<VerbsGid> groups;
  };
  struct Handle : ibv_ah {
    VerbsGid to{};
  };

  template <class Object>
  static Object* made(Object* object) {
    ++current_->objects;
    return object;
  }
  static VerbsGid gid_in(const ibv_gid& from) {
    VerbsGid gid;
    std::memcpy(gid.data(), from.raw, gid.size());
    return gid;
  }

  static void complete(Queue& queue, const ibv_wc& what, bool is_solicited) {
    UNISONO_CHECK(queue.done.size() < queue.depth, "a queue of completions overflows");
    queue.done.push_back(what);
    const bool wakes =
        queue.notify == Notify::any || (queue.notify == Notify::solicited && is_solicited);
    if (!wakes) return;
    queue.notify = Notify::none;
    queue.of->woken.push_back(&queue);
    eventfd_write(queue.of->events.get(), 1);
  }

  void deliver(const Pair& from, Pair& to, const VerbsGid& target,
               const std::vector<std::byte>& bytes, const ibv_send_wr& request) {
    if (to.device->removed) return;
    if (request.wr.ud.remote_qkey != to.key) {
      ++foreign_key;
      return;
    }
    least_receives = std::min(least_receives, to.posted.size());
    if (to.posted.empty()) {
      ++without_receive;
      return;
    }
    const ibv_recv_wr receive = to.posted.front();
    const ibv_sge place = to.places.front();
    to.posted.pop_front();
    to.places.pop_front();
    constexpr std::size_t kRoute = 40;
    ibv_wc done{};
    done.wr_id = receive.wr_id;
    done.byte_len = static_cast<std::uint32_t>(kRoute + bytes.size());
    done.src_qp = from.qp_num;
    done.wc_flags = IBV_WC_GRH;
    done.status = done.byte_len <= place.length ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
    auto* const start = reinterpret_cast<std::byte*>(place.addr);
    std::memset(start, 0xee, kRoute);  // no part of it is to be believed but an IPv4 header
    std::memcpy(start + 32, from.device->gid.data() + 12, 4);
    std::memcpy(start + 36, target.data() + 12, 4);
    if (done.status == IBV_WC_SUCCESS) std::memcpy(start + kRoute, bytes.data(), bytes.size());
    complete(*to.receives, done, (request.send_flags & IBV_SEND_SOLICITED) != 0);
  }

  static int post_send(ibv_qp* pair, ibv_send_wr* request, ibv_send_wr**) {
    FakeRdma& self = *current_;
    auto& from = *static_cast<Pair*>(pair);
    if (from.under_way == from.most_sends) return ENOMEM;
    const ibv_sge& piece = request->sg_list[0];
    const auto* const start = reinterpret_cast<const std::byte*>(piece.addr);
    const std::vector<std::byte> bytes(start, start + piece.length);
    const VerbsGid& target = static_cast<const Handle*>(request->wr.ud.ah)->to;
    if ((request->send_flags & IBV_SEND_SOLICITED) != 0) ++self.solicited;
    ++from.under_way;
    for (Pair* to : self.pairs_) {
      if (from.device->removed) break;
      const bool is_for =
          request->wr.ud.remote_qpn == 0xff'ffff
              ? to->groups.contains(target)
              : to->device->gid == target && to->qp_num == request->wr.ud.remote_qpn;
      if (is_for) self.deliver(from, *to, target, bytes, *request);
    }
    if ((request->send_flags & IBV_SEND_SIGNALED) == 0) return 0;
    from.reported.push_back(request->wr_id);
    if (self.completes) finish(from);
    return 0;
  }
  static void finish(Pair& from) {
    from.under_way = 0;
    for (const std::uint64_t id : from.reported) {
      ibv_wc done{};
      done.wr_id = id;
      complete(*from.sends, done, false);
    }
    from.reported.clear();
  }
  static int post_receive(ibv_qp* pair, ibv_recv_wr* request, ibv_recv_wr**) {
    auto& to = *static_cast<Pair*>(pair);
    if (to.posted.size() == to.most_receives) return ENOMEM;
    to.posted.push_back(*request);
    to.places.push_back(request->sg_list[0]);
    return 0;
  }
  static int poll(ibv_cq* queue, int most, ibv_wc* to) {
    auto& from = *static_cast<Queue*>(queue);
    int count = 0;
    for (; count < most && !from.done.empty(); ++count) {
      to[count] = from.done.front();
      from.done.pop_front();
    }
    return count;
  }
  static int request_notify(ibv_cq* queue, int only_solicited) {
    Notify& notify = static_cast<Queue*>(queue)->notify;
    if (notify != Notify::any) notify = only_solicited != 0 ? Notify::solicited : Notify::any;
    return 0;
  }

  static ibv_context* open(ibv_device* device) {
    auto* const context = made(new Context);
    context->device_of = static_cast<Device*>(device);
    context->async_fd = context->events.get();
    context->ops.post_send = post_send;
    context->ops.post_recv = post_receive;
    context->ops.poll_cq = poll;
    context->ops.req_notify_cq = request_notify;
    current_->contexts_.insert(context);
    return context;
  }
  static int close(ibv_context* context) {
    current_->contexts_.erase(static_cast<Context*>(context));
    return freed<Context>(context);
  }
  template <class Object, class Base>
  static int freed(Base* object) {
    --current_->objects;
    delete static_cast<Object*>(object);
    return 0;
  }
  static ibv_qp* make_pair(ibv_pd* domain, ibv_qp_init_attr* what) {
    auto* const pair = made(new Pair);
    pair->context = domain->context;
    pair->device = static_cast<Context*>(domain->context)->device_of;
    pair->sends = static_cast<Queue*>(what->send_cq);
    pair->receives = static_cast<Queue*>(what->recv_cq);
    pair->most_sends = what->cap.max_send_wr;
    pair->most_receives = what->cap.max_recv_wr;
    pair->qp_num = ++current_->last_number_;
    current_->pairs_.push_back(pair);
    return pair;
  }
  static int modify(ibv_qp* pair, ibv_qp_attr* to, int what) {
    if ((what & IBV_QP_QKEY) != 0) static_cast<Pair*>(pair)->key = to->qkey;
    return 0;
  }
  static int destroy_pair(ibv_qp* pair) {
    UNISONO_CHECK(static_cast<Pair*>(pair)->groups.empty(), "it is attached to a group");
    std::erase(current_->pairs_, pair);
    return freed<Pair>(pair);
  }

  static VerbsLibrary functions() {
    VerbsLibrary all;
    all.get_device_list = [](int* count) {
      *count = static_cast<int>(current_->devices_.size());
      return current_->list_.data();
    };
    all.free_device_list = [](ibv_device**) {};
    all.get_device_name = [](ibv_device* device) {
      return static_cast<Device*>(device)->name.c_str();
    };
    all.open_device = open;
    all.close_device = close;
    all.query_device = [](ibv_context*, ibv_device_attr* to) {
      *to = current_->limits;
      return 0;
    };
    all.query_port = [](ibv_context*, std::uint8_t, ibv_port_attr* to) {
      *to = {};
      to->state = current_->state;
      to->active_mtu = current_->mtu;
      to->gid_tbl_len = 1;
      to->link_layer = current_->link_layer;
      return 0;
    };
    all.query_gid_ex = [](ibv_context* context, std::uint32_t, std::uint32_t, ibv_gid_entry* to,
                          std::uint32_t, std::size_t) {
      *to = {};
      to->gid_type = IBV_GID_TYPE_ROCE_V2;
      const VerbsGid& gid = static_cast<Context*>(context)->device_of->gid;
      std::memcpy(to->gid.raw, gid.data(), gid.size());
      return 0;
    };
    all.get_async_event = [](ibv_context* context, ibv_async_event* to) {
      auto& from = *static_cast<Context*>(context);
      if (from.pending.empty()) return -1;
      *to = {};
      to->event_type = from.pending.front();
      from.pending.pop_front();
      eventfd_t count = 0;
      eventfd_read(from.events.get(), &count);
      return 0;
    };
    all.ack_async_event = [](ibv_async_event*) {};
    all.alloc_pd = [](ibv_context* context) {
      auto* const domain = made(new ibv_pd{});
      domain->context = context;
      return domain;
    };
    all.dealloc_pd = freed<ibv_pd, ibv_pd>;
    all.reg_mr = [](ibv_pd*, void*, std::size_t, int) { return made(new ibv_mr{}); };
    all.dereg_mr = freed<ibv_mr, ibv_mr>;
    all.create_comp_channel = [](ibv_context*) -> ibv_comp_channel* {
      auto* const channel = made(new Channel);
      channel->fd = channel->events.get();
      return channel;
    };
    all.destroy_comp_channel = freed<Channel, ibv_comp_channel>;
    all.create_cq = [](ibv_context* context, int depth, void*, ibv_comp_channel* channel,
                       int) -> ibv_cq* {
      auto* const queue = made(new Queue);
      queue->context = context;
      queue->of = static_cast<Channel*>(channel);
      queue->depth = static_cast<std::size_t>(depth);
      return queue;
    };
    all.destroy_cq = freed<Queue, ibv_cq>;
    all.get_cq_event = [](ibv_comp_channel* channel, ibv_cq** queue, void**) {
      auto& of = *static_cast<Channel*>(channel);
      if (of.woken.empty()) return -1;
      *queue = of.woken.front();
      of.woken.pop_front();
      eventfd_t count = 0;
      eventfd_read(of.events.get(), &count);
      return 0;
    };
    all.ack_cq_events = [](ibv_cq*, unsigned) {};
    all.create_qp = make_pair;
    all.modify_qp = modify;
    all.destroy_qp = destroy_pair;
    all.create_ah = [](ibv_pd*, ibv_ah_attr* to) -> ibv_ah* {
      auto* const handle = made(new Handle);
      handle->to = gid_in(to->grh.dgid);
      return handle;
    };
    all.destroy_ah = freed<Handle, ibv_ah>;
    all.attach_mcast = [](ibv_qp* pair, const ibv_gid* group, std::uint16_t) {
      if (!current_->attaches) return ENOSPC;
      static_cast<Pair*>(pair)->groups.insert(gid_in(*group));
      return 0;
    };
    all.detach_mcast = [](ibv_qp* pair, const ibv_gid* group, std::uint16_t) {
      static_cast<Pair*>(pair)->groups.erase(gid_in(*group));
      return 0;
    };
    all.wc_status_str = [](ibv_wc_status) { return "an error of the fake device"; };
    return all;
  }

  static inline FakeRdma* current_ = nullptr;  // libibverbs's functions know no object of ours
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<ibv_device*> list_;
  std::set<Context*> contexts_;
  std::vector<Pair*> pairs_;
  std::uint32_t last_number_ = 16;
};

}  // namespace unisono::transport

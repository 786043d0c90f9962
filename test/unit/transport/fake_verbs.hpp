// SPDX-License-Identifier: BSD-3-Clause
// FakeVerbs: functions of libibverbs for machines that have no RDMA device, or an unsuitable one.
// No bytes move. One at a time, in one thread. Needs the headers of libibverbs, not the library.
#pragma once

#include <infiniband/verbs.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "base/check.hpp"
#include "base/descriptor.hpp"
#include "transport/verbs/library.hpp"

namespace unisono::transport {

class FakeVerbs {
 public:
  FakeVerbs() {
    UNISONO_CHECK(current_ == nullptr, "one at a time");
    current_ = this;
    port.state = IBV_PORT_ACTIVE;
    port.active_mtu = IBV_MTU_1024;
    port.gid_tbl_len = 1;
    port.link_layer = IBV_LINK_LAYER_ETHERNET;
    limits.max_qp_wr = limits.max_srq_wr = limits.max_cqe = 4096;
    limits.max_qp = 64;
    limits.max_sge = 1;
    limits.phys_port_cnt = 1;
    gid.gid_type = IBV_GID_TYPE_ROCE_V2;
    gid.gid.raw[15] = 1;
    context_.async_fd = events_.get();
    context_.ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    context_.ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    context_.ops.post_send = [](ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; };
    context_.ops.poll_cq = [](ibv_cq*, int most, ibv_wc* to) {
      int count = 0;
      for (; count < most && !current_->ended.empty(); current_->ended.pop_front()) {
        to[count++] = current_->ended.front();
      }
      return count;
    };
    channel_.fd = channel_events_.get();
    queue_.context = shared_.context = control_.context = &context_;
  }
  ~FakeVerbs() { current_ = nullptr; }
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  base::Result<std::unique_ptr<RemoteMemory>> open(const std::string& device = "") {
    return open_verbs_with(library(), {.device = device, .rank = 0, .ranks = 4});
  }

  int devices = 1;  // all of them named "fake0"
  ibv_port_attr port{};
  ibv_device_attr limits{};
  ibv_gid_entry gid{};
  bool opens = true;
  bool registers = true;
  std::deque<ibv_wc> ended{};            // completions of requests, for the next poll()
  std::deque<ibv_event_type> reports{};  // events of the device
  int objects = 0;                       // that were made and not freed

 private:
  template <class Object>
  static Object* made(Object& object) {
    ++current_->objects;
    return &object;
  }
  template <class Object>
  static int freed(Object*) {
    --current_->objects;
    return 0;
  }
  static const VerbsLibrary& library() {
    static const VerbsLibrary functions = [] {
      VerbsLibrary all;
      all.get_device_list = [](int* count) {
        *count = current_->devices;
        return current_->list_.data();
      };
      all.free_device_list = [](ibv_device**) {};
      all.get_device_name = [](ibv_device*) -> const char* { return "fake0"; };
      all.open_device = [](ibv_device*) -> ibv_context* {
        if (current_->opens) return made(current_->context_);
        errno = EACCES;
        return nullptr;
      };
      all.close_device = freed<ibv_context>;
      all.query_device = [](ibv_context*, ibv_device_attr* to) {
        *to = current_->limits;
        return 0;
      };
      all.query_port = [](ibv_context*, std::uint8_t, ibv_port_attr* to) {
        *to = current_->port;
        return 0;
      };
      all.query_gid_ex = [](ibv_context*, std::uint32_t, std::uint32_t, ibv_gid_entry* to,
                            std::uint32_t, std::size_t) {
        *to = current_->gid;
        return 0;
      };
      all.get_async_event = [](ibv_context*, ibv_async_event* to) {
        if (current_->reports.empty()) return -1;
        to->event_type = current_->reports.front();
        current_->reports.pop_front();
        return 0;
      };
      all.ack_async_event = [](ibv_async_event*) {};
      all.wc_status_str = [](ibv_wc_status status) {
        return status == IBV_WC_RETRY_EXC_ERR ? "too many retries" : "another status";
      };
      all.create_ah = [](ibv_pd*, ibv_ah_attr*) { return made(current_->route_); };
      all.destroy_ah = freed<ibv_ah>;
      all.alloc_pd = [](ibv_context*) { return made(current_->domain_); };
      all.dealloc_pd = freed<ibv_pd>;
      all.reg_mr = [](ibv_pd*, void*, std::size_t, int) -> ibv_mr* {
        if (current_->registers) return made(current_->registration_);
        errno = ENOMEM;
        return nullptr;
      };
      all.dereg_mr = freed<ibv_mr>;
      all.create_comp_channel = [](ibv_context*) { return made(current_->channel_); };
      all.destroy_comp_channel = freed<ibv_comp_channel>;
      all.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) {
        return made(current_->queue_);
      };
      all.destroy_cq = freed<ibv_cq>;
      all.create_srq = [](ibv_pd*, ibv_srq_init_attr*) { return made(current_->shared_); };
      all.destroy_srq = freed<ibv_srq>;
      all.create_qp = [](ibv_pd*, ibv_qp_init_attr*) { return made(current_->control_); };
      all.modify_qp = [](ibv_qp*, ibv_qp_attr*, int) { return 0; };
      all.destroy_qp = freed<ibv_qp>;
      return all;
    }();
    return functions;
  }

  static inline FakeVerbs* current_ = nullptr;  // libibverbs's functions know no object of ours
  base::Descriptor events_{eventfd(0, EFD_CLOEXEC)};
  base::Descriptor channel_events_{eventfd(0, EFD_CLOEXEC)};
  ibv_device device_{};
  std::array<ibv_device*, 3> list_{&device_, &device_, nullptr};
  ibv_context context_{};
  ibv_pd domain_{};
  ibv_mr registration_{};
  ibv_comp_channel channel_{};
  ibv_cq queue_{};  // both of them: that of sends is polled first
  ibv_srq shared_{};
  ibv_ah route_{};
  ibv_qp control_{};
};

}  // namespace unisono::transport

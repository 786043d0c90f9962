// SPDX-License-Identifier: BSD-3-Clause
// FakeOfi: a provider of libfabric that keeps posted transfers until the test ends them, has no
// room for some ranks, or has a completion queue that fails. No bytes move. One at a time, in one
// thread. Needs libfabric's headers, but not the library.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/descriptor.hpp"
#include "transport/ofi/library.hpp"

namespace unisono::transport {

class FakeOfi {
 public:
  struct Posted {
    bool is_read = false;
    int rank = -1;
    std::size_t bytes = 0;
    std::uint64_t offset = 0;
    void* context = nullptr;
  };

  FakeOfi() {
    UNISONO_CHECK(current_ == nullptr, "one at a time");
    current_ = this;
    fid_ops_.close = [](fid*) { return 0; };
    fid_ops_.bind = [](fid*, fid*, std::uint64_t) { return 0; };
    fid_ops_.control = [](fid*, int command, void* result) {
      if (command == FI_GETWAIT) *static_cast<int*>(result) = current_->sleeper_.get();
      return 0;
    };
    fabric_ops_.domain = [](fid_fabric*, fi_info*, fid_domain** made, void*) {
      *made = &current_->domain_;
      return 0;
    };
    fabric_ops_.trywait = [](fid_fabric*, fid**, int) { return 0; };
    make_domain();
    make_endpoint();
    queue_ops_.read = [](fid_cq*, void* entries, std::size_t count) {
      return current_->read_queue(static_cast<fi_cq_entry*>(entries), count);
    };
    queue_ops_.readerr = [](fid_cq*, fi_cq_err_entry*, std::uint64_t) {
      return current_->error_result;
    };
    for (fid* object : {&fabric_.fid, &domain_.fid, &addresses_.fid, &queue_.fid, &endpoint_.fid,
                        &registration_.fid}) {
      object->ops = &fid_ops_;
    }
    fabric_.ops = &fabric_ops_;
    queue_.ops = &queue_ops_;
  }
  ~FakeOfi() { current_ = nullptr; }
  FakeOfi(const FakeOfi&) = delete;
  FakeOfi& operator=(const FakeOfi&) = delete;

  // For open_ofi_with(): one of `ranks`, which all have the memory `region`.
  base::Result<std::unique_ptr<RemoteMemory>> open(int ranks, std::span<std::byte> region) {
    UNISONO_ASSIGN(auto opened, open_ofi_with(library(), {.provider = "fake",
                                                          .address = *parse_ip("127.0.0.1"),
                                                          .ranks = ranks,
                                                          .region = region.data(),
                                                          .region_bytes = region.size()}));
    for (int rank = 0; rank < ranks; ++rank) {
      RegionCard card;
      card.address_bytes = 1;
      card.address[0] = static_cast<std::byte>(rank);
      UNISONO_TRY(opened->meet(rank, card));
    }
    return opened;
  }

  // Completes the oldest transfer posted to that rank.
  void end_one(int rank) {
    const auto one = std::ranges::find(posted, rank, &Posted::rank);
    UNISONO_CHECK(one != posted.end(), "nothing is posted to that rank");
    ended_.push_back(one->context);
    posted.erase(one);
  }
  std::size_t posted_to(int rank) const {
    return static_cast<std::size_t>(std::ranges::count(posted, rank, &Posted::rank));
  }

  std::deque<Posted> posted;
  std::set<int> full;        // ranks for which it has no room
  ssize_t queue_result = 0;  // result of reading the queue; 0: the completed transfers
  ssize_t error_result = 0;  // result of reading its error

 private:
  static const OfiLibrary& library() {
    static const OfiLibrary functions = {
        .getinfo =
            [](std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*,
               fi_info** found) {
              *found = new_info(nullptr);
              (*found)->fabric_attr->prov_name = strdup("fake");
              return 0;
            },
        .freeinfo = free_info,
        .dupinfo = new_info,
        .fabric =
            [](fi_fabric_attr*, fid_fabric** made, void*) {
              *made = &current_->fabric_;
              return 0;
            },
        .strerror = [](int number) -> const char* { return std::strerror(number); },
        .version = [] { return std::uint32_t{0}; },
    };
    return functions;
  }
  static fi_info* new_info(const fi_info*) {
    auto* const info = new fi_info{};
    info->tx_attr = new fi_tx_attr{};
    info->ep_attr = new fi_ep_attr{};
    info->domain_attr = new fi_domain_attr{};
    info->fabric_attr = new fi_fabric_attr{};
    return info;
  }
  static void free_info(fi_info* info) {
    std::free(info->fabric_attr->prov_name);
    delete info->tx_attr;
    delete info->ep_attr;
    delete info->domain_attr;
    delete info->fabric_attr;
    delete info;
  }

  void make_domain() {
    domain_ops_.av_open = [](fid_domain*, fi_av_attr*, fid_av** made, void*) {
      *made = &current_->addresses_;
      return 0;
    };
    domain_ops_.cq_open = [](fid_domain*, fi_cq_attr*, fid_cq** made, void*) {
      *made = &current_->queue_;
      return 0;
    };
    domain_ops_.endpoint = [](fid_domain*, fi_info*, fid_ep** made, void*) {
      *made = &current_->endpoint_;
      return 0;
    };
    memory_ops_.reg = [](fid*, const void*, std::size_t, std::uint64_t, std::uint64_t,
                         std::uint64_t, std::uint64_t, fid_mr** made, void*) {
      *made = &current_->registration_;
      return 0;
    };
    address_ops_.insert = [](fid_av*, const void* address, std::size_t, fi_addr_t* result,
                             std::uint64_t, void*) {
      *result = *static_cast<const std::uint8_t*>(address);
      return 1;
    };
    domain_.ops = &domain_ops_;
    domain_.mr = &memory_ops_;
    addresses_.ops = &address_ops_;
  }

  void make_endpoint() {
    name_ops_.getname = [](fid*, void*, std::size_t* bytes) {
      *bytes = 1;
      return 0;
    };
    remote_ops_.readmsg = [](fid_ep*, const fi_msg_rma* message, std::uint64_t) {
      return current_->post(true, *message);
    };
    remote_ops_.writemsg = [](fid_ep*, const fi_msg_rma* message, std::uint64_t) {
      return current_->post(false, *message);
    };
    endpoint_.cm = &name_ops_;
    endpoint_.rma = &remote_ops_;
  }

  ssize_t post(bool is_read, const fi_msg_rma& message) {
    const int rank = static_cast<int>(message.addr);
    if (full.contains(rank)) return -FI_EAGAIN;
    posted.push_back(
        {is_read, rank, message.msg_iov->iov_len, message.rma_iov->addr, message.context});
    return 0;
  }

  ssize_t read_queue(fi_cq_entry* entries, std::size_t count) {
    if (queue_result != 0) return queue_result;
    if (ended_.empty()) return -FI_EAGAIN;
    count = std::min(count, ended_.size());
    for (std::size_t i = 0; i < count; ++i) {
      entries[i].op_context = ended_.front();
      ended_.pop_front();
    }
    return static_cast<ssize_t>(count);
  }

  static inline FakeOfi* current_ = nullptr;  // libfabric's functions know no object of ours
  base::Descriptor sleeper_{eventfd(0, EFD_CLOEXEC)};
  std::deque<void*> ended_;
  fi_ops fid_ops_{};
  fi_ops_fabric fabric_ops_{};
  fi_ops_domain domain_ops_{};
  fi_ops_mr memory_ops_{};
  fi_ops_av address_ops_{};
  fi_ops_cq queue_ops_{};
  fi_ops_cm name_ops_{};
  fi_ops_rma remote_ops_{};
  fid_fabric fabric_{};
  fid_domain domain_{};
  fid_av addresses_{};
  fid_cq queue_{};
  fid_ep endpoint_{};
  fid_mr registration_{};
};

}  // namespace unisono::transport

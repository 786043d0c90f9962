// SPDX-License-Identifier: BSD-3-Clause
// OfiEndpoint: libfabric's objects for remote memory: a reliable-datagram endpoint of one provider,
// its completion queue, the others' addresses, and the own region, which they may write and read.
// Opening is control path, any thread; the object is its rank's, one thread at a time.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "transport/ofi/library.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::transport {

struct CloseOfiObject {
  template <class Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <class Object>
using OfiOwned = std::unique_ptr<Object, CloseOfiObject>;

class OfiEndpoint {
 public:
  // `library` outlives it. `completions`: that the queue holds.
  OfiEndpoint(const OfiLibrary& library, const OfiOptions& options, std::size_t completions)
      : library_(library),
        options_(options),
        completions_(completions),
        info_(nullptr, library.freeinfo) {}

  base::Status open();
  // Closes the endpoint. After that the provider no longer accesses memory that was handed to it.
  // If binds_memory(), registrations made by enroll() have to be freed first.
  void close();

  const std::string& name() const { return name_; }  // "ofi/tcp"
  const RegionCard& card() const { return card_; }
  base::Result<fi_addr_t> address_of(int rank, const RegionCard& card);
  base::Result<OfiOwned<fid_mr>> enroll(void* memory, std::size_t bytes, std::uint64_t access);
  bool wants_local_registration() const { return (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }
  bool binds_memory() const {
    return info_ != nullptr && (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
  }

  fid_ep* get() const { return endpoint_.get(); }
  fid_cq* queue() const { return queue_.get(); }
  fid_mr* region() const { return region_.get(); }
  int descriptor() const { return descriptor_; }  // -1: there is nothing to sleep on
  bool may_sleep();

 private:
  base::Error failure(std::string_view what, long result) const;
  const char* text_of(long result) const { return library_.strerror(static_cast<int>(-result)); }
  base::Status open_queue();
  base::Status open_endpoint();
  base::Status publish();

  const OfiLibrary& library_;
  OfiOptions options_;
  std::size_t completions_;
  std::string name_;
  std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_;
  OfiOwned<fid_fabric> fabric_;  // in the order of their dependencies
  OfiOwned<fid_domain> domain_;
  OfiOwned<fid_av> addresses_;
  OfiOwned<fid_cq> queue_;
  OfiOwned<fid_mr> region_;
  OfiOwned<fid_ep> endpoint_;
  int descriptor_ = -1;
  RegionCard card_;
};

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/verbs/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/life/lasting.hpp"

namespace unisono::transport {
namespace {

constexpr const char* kVerbsFile = "libibverbs.so.1";

template <class Function>
void find_verb(void* library, const char* name, Function& function, const char*& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && missing == nullptr) missing = name;
}

base::Result<VerbsLibrary> load_verbs() {
  void* const library = dlopen(kVerbsFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return base::Error{base::Code::unsupported,
                       fmt::format("{} could not be loaded (Debian: libibverbs1 and "
                                   "ibverbs-providers): {}",
                                   kVerbsFile, dlerror())};
  }
  VerbsLibrary all;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    find_verb(library, name, function, missing);
  };
  find("ibv_get_device_list", all.get_device_list);
  find("ibv_free_device_list", all.free_device_list);
  find("ibv_get_device_name", all.get_device_name);
  find("ibv_open_device", all.open_device);
  find("ibv_close_device", all.close_device);
  find("ibv_query_device", all.query_device);
  find("ibv_query_port", all.query_port);
  find("_ibv_query_gid_ex", all.query_gid_ex);
  find("ibv_get_async_event", all.get_async_event);
  find("ibv_ack_async_event", all.ack_async_event);
  find("ibv_alloc_pd", all.alloc_pd);
  find("ibv_dealloc_pd", all.dealloc_pd);
  find("ibv_reg_mr", all.reg_mr);
  find("ibv_dereg_mr", all.dereg_mr);
  find("ibv_create_comp_channel", all.create_comp_channel);
  find("ibv_destroy_comp_channel", all.destroy_comp_channel);
  find("ibv_create_cq", all.create_cq);
  find("ibv_destroy_cq", all.destroy_cq);
  find("ibv_get_cq_event", all.get_cq_event);
  find("ibv_ack_cq_events", all.ack_cq_events);
  find("ibv_create_srq", all.create_srq);
  find("ibv_destroy_srq", all.destroy_srq);
  find("ibv_create_qp", all.create_qp);
  find("ibv_modify_qp", all.modify_qp);
  find("ibv_destroy_qp", all.destroy_qp);
  find("ibv_create_ah", all.create_ah);
  find("ibv_destroy_ah", all.destroy_ah);
  find("ibv_attach_mcast", all.attach_mcast);
  find("ibv_detach_mcast", all.detach_mcast);
  find("ibv_wc_status_str", all.wc_status_str);
  if (missing == nullptr) return all;
  return base::Error{
      base::Code::unsupported,
      fmt::format("{} lacks {}; it takes rdma-core 33 or newer", kVerbsFile, missing)};
}

}  // namespace

const base::Result<VerbsLibrary>& verbs_library() {
  static const base::Result<VerbsLibrary>& library = base::lasting(load_verbs());
  return library;
}

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
// The functions of libibverbs that are symbols of its library. Its other functions are inline calls
// through tables that these return. Loaded once for the process and never unloaded. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "base/result.hpp"
#include "transport/verbs/verbs.hpp"

namespace unisono::transport {

struct VerbsLibrary {
  decltype(&ibv_get_device_list) get_device_list = nullptr;
  decltype(&ibv_free_device_list) free_device_list = nullptr;
  decltype(&ibv_get_device_name) get_device_name = nullptr;
  decltype(&ibv_open_device) open_device = nullptr;
  decltype(&ibv_close_device) close_device = nullptr;
  decltype(&ibv_query_device) query_device = nullptr;
  // The symbol writes the first part of the structure that the header's inline function takes.
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*) = nullptr;
  decltype(&_ibv_query_gid_ex) query_gid_ex = nullptr;
  decltype(&ibv_get_async_event) get_async_event = nullptr;
  decltype(&ibv_ack_async_event) ack_async_event = nullptr;
  decltype(&ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&ibv_dealloc_pd) dealloc_pd = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int) = nullptr;
  decltype(&ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&ibv_create_cq) create_cq = nullptr;
  decltype(&ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&ibv_create_srq) create_srq = nullptr;
  decltype(&ibv_destroy_srq) destroy_srq = nullptr;
  decltype(&ibv_create_qp) create_qp = nullptr;
  decltype(&ibv_modify_qp) modify_qp = nullptr;
  decltype(&ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&ibv_create_ah) create_ah = nullptr;
  decltype(&ibv_destroy_ah) destroy_ah = nullptr;
  decltype(&ibv_attach_mcast) attach_mcast = nullptr;
  decltype(&ibv_detach_mcast) detach_mcast = nullptr;
  decltype(&ibv_wc_status_str) wc_status_str = nullptr;
};

// The same answer at every call. Errors: unsupported.
const base::Result<VerbsLibrary>& verbs_library();

// open_verbs() with these functions: tests have devices of their own. `library` outlives it.
base::Result<std::unique_ptr<RemoteMemory>> open_verbs_with(const VerbsLibrary& library,
                                                            const VerbsOptions& options);

}  // namespace unisono::transport

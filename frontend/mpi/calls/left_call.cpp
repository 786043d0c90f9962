// SPDX-License-Identifier: BSD-3-Clause
#include "calls/left_call.hpp"

#include <cstdlib>
#include <string>

#include "host/host.hpp"
#include "host/types.hpp"
#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

// As Unisono's C API has it.
std::string profiled_name(const LeftCall& call) {
  const std::string name =
      call.collective == Collective::Bcast ? "broadcast" : small_name(call.collective);
  return call.form == CallForm::initialized ? name + "_init" : name;
}

}  // namespace

bool counts_left_calls() {
  static const bool counts = [] {
    const char* const file = std::getenv("UNISONO_PROFILE");
    return file != nullptr && *file != '\0' && library().loaded;
  }();
  return counts;
}

bool find_ranks(const LeftCall& call, std::optional<int> root, Ranks* ranks) {
  const Host& mpi = host();
  int is_between_groups = 0;
  mpi.Comm_test_inter(call.comm, &is_between_groups);
  if (is_between_groups == 0) {
    return mpi.Comm_rank(call.comm, &ranks->rank) == 0 &&
           mpi.Comm_size(call.comm, &ranks->size) == 0;
  }
  // MPI_ROOT and MPI_PROC_NULL are negative. Another root is in the other group.
  if (root && *root < 0) return false;
  ranks->rank = -1;
  return (call.collective == Collective::Reduce_scatter
              ? mpi.Comm_size(call.comm, &ranks->size)
              : mpi.Comm_remote_size(call.comm, &ranks->size)) == 0;
}

std::int64_t elements_of(const Ranks& ranks, Integers counts) {
  std::int64_t all = 0;
  for (int i = 0; i < ranks.size; ++i) all += counts[i];
  return all / ranks.size;
}

void set_reduction(LeftCall& call, std::int64_t elements, Handle type, Handle op) {
  const auto reduction = find_reduction(type, op);
  call.type = reduction ? reduction->type : UNISONO_PROFILE_OTHER;
  call.op = reduction ? reduction->op : UNISONO_PROFILE_OTHER;
  call.bytes = elements * (reduction ? reduction->size : type_info(type).size);
}

void LeftCall::count() const {
  static const auto* const by = new std::string(library_name());  // no exit destroys it
  unisono_profiled_call_t told{};
  told.size = sizeof told;
  const std::string name = profiled_name(*this);
  told.collective = name.c_str();
  told.library = by->c_str();
  told.reason = reason != nullptr ? reason : why_host(comm);
  told.type = type;
  told.op = op;
  host().Comm_size(comm, &told.ranks);
  if (own != nullptr) library().comm_hosts(own->unisono.get(), &told.hosts);
  told.started = form == CallForm::started ? 1 : 0;
  told.bytes = bytes;
  told.ns = ns;
  if (library().profile_call(&told) != UNISONO_OK) log_warning("%s", library().last_error());
}

}  // namespace unisono::mpi

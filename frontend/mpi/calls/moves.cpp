// SPDX-License-Identifier: BSD-3-Clause
#include "calls/moves.hpp"

#include <algorithm>
#include <cstring>

#include "host/host.hpp"
#include "library.hpp"

namespace unisono::mpi {
namespace {

bool is_root(const Communicator& own, int root) { return own.rank == root; }

bool is_rank(const Communicator& own, int root) { return root >= 0 && root < own.size; }

bool are_counts(Integers counts, Integers displacements, int blocks) {
  return counts && displacements && counts.are_counts(blocks);
}

const std::int64_t* counts_of(const std::optional<Elements>& elements) {
  return elements ? elements->counts() : nullptr;
}

const std::int64_t* displacements_of(const std::optional<Elements>& elements) {
  return elements ? elements->displacements() : nullptr;
}

std::int64_t bytes_of(const std::optional<Elements>& elements) {
  return elements ? elements->bytes() : 0;
}

std::int64_t bytes_of_block(Integers counts, int block, Handle type) {
  return counts ? bytes_to_move(counts[block], type) : Call::kUnknown;
}

std::int64_t bytes_of_block(Integers counts, int block, const void* types) {
  return types == nullptr ? Call::kUnknown
                          : bytes_of_block(counts, block, host().handle_at(types, block));
}

// `types`: one for all blocks, or an array.
template <class Types>
std::int64_t average_of_two(const Ranks& own, const void* send, Integers send_counts,
                            Types send_types, Integers receive_counts, Types receive_types) {
  const int other = other_of_two(own);
  if (other < 0) return Call::kUnknown;
  const std::int64_t in = bytes_of_block(receive_counts, other, receive_types);
  const std::int64_t out = is_in_place(send) ? in : bytes_of_block(send_counts, other, send_types);
  return in < 0 || out < 0 ? Call::kUnknown : (in + out) / 2;
}

std::byte* block_at(const Elements& elements, int block) {
  const auto base = reinterpret_cast<std::intptr_t>(elements.data());
  return reinterpret_cast<std::byte*>(base + elements.displacements()[block]);
}

// A rank's block for itself. False: the lengths differ, against the standard.
bool copy_own(const void* from, std::int64_t from_bytes, void* to, std::int64_t to_bytes) {
  if (from_bytes != to_bytes) return false;
  if (to_bytes > 0) std::memmove(to, from, static_cast<std::size_t>(to_bytes));
  return true;
}

}  // namespace

// If there are no elements, the type may be a null handle.
std::int64_t bytes_to_move(LargeCount count, Handle type) {
  if (count == 0) return 0;
  const TypeInfo info = type_info(type);
  return count < 0 || !info.valid ? Call::kUnknown : count * info.size;
}

// The input of one call is packed before the program's call returns. So only the output needs its
// type later.
int Move::keep(Uses uses) {
  if (uses == Uses::many && input_) {
    if (const int error = input_->keep(); error != 0) return error;
  }
  return output_ ? output_->keep() : 0;
}

int Move::load() {
  if (output_ && !in_place_) output_->reserve();
  if (input_) {
    // MPI does not allow that, and some MPIs' users do it all the same.
    if (output_ && input_->overlaps(*output_)) input_->copy();
    return input_->load();
  }
  // This rank's block lies in the output: all of that is packed, if any.
  return output_ && in_place_ ? output_->load() : 0;
}

bool BcastCall::take(const Communicator& own, void* buffer, LargeCount count, Handle type, int root,
                     Handle comm) {
  if (count < 0 || !is_rank(own, root)) return false;
  root_ = root;
  return is_root(own, root) ? set_input(buffer, count, type, comm)
                            : set_output(buffer, count, type, comm);
}

int BcastCall::call(const Communicator& own, unisono_request_t* request) {
  const Elements& elements = input_ ? *input_ : *output_;
  return invoke(request, library().broadcast, library().broadcast_start, elements.data(),
                elements.bytes(), UNISONO_BYTE, root_, own.unisono.get());
}

std::optional<LastCall::Kept> BcastCall::kept() const {
  const Elements& elements = input_ ? *input_ : *output_;
  if (!elements.is_plain() || elements.bytes() == 0) return std::nullopt;
  return LastCall::Kept{{.input_bytes = elements.bytes()}, {.count = elements.bytes()}};
}

bool AllgatherCall::take(const Communicator& own, const void* send, LargeCount send_count,
                         Handle send_type, void* receive, LargeCount receive_count,
                         Handle receive_type, Handle comm) {
  in_place_ = is_in_place(send);
  if (receive_count < 0 || (!in_place_ && send_count < 0)) return false;
  if (!set_output(receive, std::int64_t{own.size} * receive_count, receive_type, comm)) {
    return false;
  }
  block_ = receive_count * output_->type_bytes();
  return in_place_ || set_input(send, send_count, send_type, comm);
}

int AllgatherCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().allgather, library().allgather_start, from(), to(),
                in_place_ ? block_ : input_->bytes(), UNISONO_BYTE, own.unisono.get());
}

bool GatherCall::take(const Communicator& own, const void* send, LargeCount send_count,
                      Handle send_type, void* receive, LargeCount receive_count,
                      Handle receive_type, int root, Handle comm) {
  if (!is_rank(own, root)) return false;
  root_ = root;
  if (is_root(own, root)) {
    in_place_ = is_in_place(send);
    if (receive_count < 0) return false;
    if (!set_output(receive, std::int64_t{own.size} * receive_count, receive_type, comm)) {
      return false;
    }
    block_ = receive_count * output_->type_bytes();
    if (in_place_) return true;
  }
  if (send_count < 0 || !set_input(send, send_count, send_type, comm)) return false;
  if (!is_root(own, root)) block_ = input_->bytes();
  return true;
}

int GatherCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().gather, library().gather_start, from(), to(), block_,
                UNISONO_BYTE, root_, own.unisono.get());
}

bool ScatterCall::take(const Communicator& own, const void* send, LargeCount send_count,
                       Handle send_type, void* receive, LargeCount receive_count,
                       Handle receive_type, int root, Handle comm) {
  if (!is_rank(own, root)) return false;
  root_ = root;
  if (is_root(own, root)) {
    in_place_ = is_in_place(receive);
    if (send_count < 0) return false;
    if (!set_input(send, std::int64_t{own.size} * send_count, send_type, comm)) return false;
    block_ = send_count * input_->type_bytes();
    if (in_place_) return true;
  }
  if (receive_count < 0 || !set_output(receive, receive_count, receive_type, comm)) return false;
  if (!is_root(own, root)) block_ = output_->bytes();
  return true;
}

int ScatterCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().scatter, library().scatter_start, from(), to(), block_,
                UNISONO_BYTE, root_, own.unisono.get());
}

bool AlltoallCall::take(const Communicator& own, const void* send, LargeCount send_count,
                        Handle send_type, void* receive, LargeCount receive_count,
                        Handle receive_type, Handle comm) {
  in_place_ = is_in_place(send);
  if (receive_count < 0 || (!in_place_ && send_count < 0)) return false;
  if (!set_output(receive, std::int64_t{own.size} * receive_count, receive_type, comm)) {
    return false;
  }
  block_ = receive_count * output_->type_bytes();
  return in_place_ || set_input(send, std::int64_t{own.size} * send_count, send_type, comm);
}

int AlltoallCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().alltoall, library().alltoall_start, from(), to(), block_,
                UNISONO_BYTE, own.unisono.get());
}

bool AllgathervCall::take(const Communicator& own, const void* send, LargeCount send_count,
                          Handle send_type, void* receive, Integers counts, Integers displacements,
                          Handle receive_type, Handle comm) {
  in_place_ = is_in_place(send);
  if (!are_counts(counts, displacements, own.size)) return false;
  if (!set_output(receive, counts, displacements, own.size, receive_type, comm)) return false;
  return in_place_ || (send_count >= 0 && set_input(send, send_count, send_type, comm));
}

std::int64_t AllgathervCall::block_bytes(const Ranks& own, const void*, LargeCount, Handle, void*,
                                         Integers counts, Integers, Handle receive_type, Handle) {
  if (!counts || !counts.are_counts(own.size)) return kUnknown;
  std::int64_t all = 0;
  for (int i = 0; i < own.size; ++i) all += counts[i];
  const std::int64_t bytes = bytes_to_move(all, receive_type);
  return bytes < 0 ? kUnknown : bytes / own.size;
}

int AllgathervCall::call(const Communicator& own, unisono_request_t* request) {
  return invoke(request, library().allgatherv, library().allgatherv_start, from(), bytes_of(input_),
                to(), counts_of(output_), displacements_of(output_), UNISONO_BYTE,
                own.unisono.get());
}

bool GathervCall::take(const Communicator& own, const void* send, LargeCount send_count,
                       Handle send_type, void* receive, Integers counts, Integers displacements,
                       Handle receive_type, int root, Handle comm) {
  if (!is_rank(own, root)) return false;
  root_ = root;
  if (is_root(own, root)) {
    in_place_ = is_in_place(send);
    if (!are_counts(counts, displacements, own.size)) return false;
    if (!set_output(receive, counts, displacements, own.size, receive_type, comm)) return false;
    if (in_place_) return true;
  }
  return send_count >= 0 && set_input(send, send_count, send_type, comm);
}

std::int64_t GathervCall::block_bytes(const Ranks& own, const void*, LargeCount send_count,
                                      Handle send_type, void*, Integers counts, Integers,
                                      Handle receive_type, int root, Handle) {
  const int other = other_of_two(own);
  if (other < 0) return kUnknown;
  return own.rank == root ? bytes_of_block(counts, other, receive_type)
                          : bytes_to_move(send_count, send_type);
}

// Two ranks know all lengths, so they make the call as if all ranks knew them. That takes no longer
// for a short block, and a third of the time for a long one.
bool GathervCall::is_broadcast(const Communicator& own) const {
  if (!is_root(own, root_)) return input_->bytes() > 0;
  return output_->counts()[other_of_two(own)] > 0 &&
         (in_place_ || copy_own(input_->data(), input_->bytes(), block_at(*output_, own.rank),
                                output_->counts()[own.rank]));
}

void GathervCall::keep_broadcast(const Communicator& own) {
  if (in_place_ || !input_->is_plain()) return;
  if (!is_root(own, root_)) {
    kept_ = {{.input_bytes = input_->bytes()}, {.count = input_->bytes()}};
  } else if (output_->is_plain()) {
    const int other = other_of_two(own);
    const std::int64_t* const at = output_->displacements();
    kept_ = {{.input_bytes = input_->bytes(), .output_bytes = 1},  // anywhere: a copy may overlap
             {.count = output_->counts()[other]},
             {at[other], at[own.rank], input_->bytes()},
             true};
  }
}

int GathervCall::call(const Communicator& own, unisono_request_t* request) {
  if (const int other = other_of_two(own); other >= 0 && is_broadcast(own)) {
    keep_broadcast(own);
    const bool receives = is_root(own, root_);
    return invoke(request, library().broadcast, library().broadcast_start,
                  receives ? block_at(*output_, other) : input_->data(),
                  receives ? output_->counts()[other] : input_->bytes(), UNISONO_BYTE, 1 - root_,
                  own.unisono.get());
  }
  return invoke(request, library().gatherv, library().gatherv_start, from(), bytes_of(input_), to(),
                counts_of(output_), displacements_of(output_), UNISONO_BYTE, root_,
                own.unisono.get());
}

bool ScattervCall::take(const Communicator& own, const void* send, Integers counts,
                        Integers displacements, Handle send_type, void* receive,
                        LargeCount receive_count, Handle receive_type, int root, Handle comm) {
  if (!is_rank(own, root)) return false;
  root_ = root;
  if (is_root(own, root)) {
    in_place_ = is_in_place(receive);
    if (!are_counts(counts, displacements, own.size)) return false;
    if (!set_input(send, counts, displacements, own.size, send_type, comm)) return false;
    if (in_place_) return true;
  }
  return receive_count >= 0 && set_output(receive, receive_count, receive_type, comm);
}

std::int64_t ScattervCall::block_bytes(const Ranks& own, const void*, Integers counts, Integers,
                                       Handle send_type, void*, LargeCount receive_count,
                                       Handle receive_type, int root, Handle) {
  const int other = other_of_two(own);
  if (other < 0) return kUnknown;
  return own.rank == root ? bytes_of_block(counts, other, send_type)
                          : bytes_to_move(receive_count, receive_type);
}

bool ScattervCall::is_broadcast(const Communicator& own) const {
  if (!is_root(own, root_)) return output_->bytes() > 0;
  return input_->counts()[other_of_two(own)] > 0 &&
         (in_place_ || copy_own(block_at(*input_, own.rank), input_->counts()[own.rank],
                                output_->data(), output_->bytes()));
}

void ScattervCall::keep_broadcast(const Communicator& own) {
  if (in_place_ || !output_->is_plain()) return;
  if (!is_root(own, root_)) {
    kept_ = {{.output_bytes = output_->bytes()}, {.count = output_->bytes()}};
  } else if (input_->is_plain()) {
    const int other = other_of_two(own);
    const std::int64_t* const at = input_->displacements();
    kept_ = {{.input_bytes = 1, .output_bytes = output_->bytes()},  // anywhere: a copy may overlap
             {.count = input_->counts()[other]},
             {at[other], at[own.rank], output_->bytes()},
             true};
  }
}

int ScattervCall::call(const Communicator& own, unisono_request_t* request) {
  if (const int other = other_of_two(own); other >= 0 && is_broadcast(own)) {
    keep_broadcast(own);
    const bool sends = is_root(own, root_);
    return invoke(request, library().broadcast, library().broadcast_start,
                  sends ? block_at(*input_, other) : output_->data(),
                  sends ? input_->counts()[other] : output_->bytes(), UNISONO_BYTE, root_,
                  own.unisono.get());
  }
  return invoke(request, library().scatterv, library().scatterv_start, from(), counts_of(input_),
                displacements_of(input_), to(), bytes_of(output_), UNISONO_BYTE, root_,
                own.unisono.get());
}

// Two ranks that exchange a long block: each gives one to all and gets the other's.
bool PairMove::set_exchange(const Communicator& own) {
  const int other = other_of_two(own);
  if (other < 0 || in_place_) return false;
  const std::int64_t out = input_->counts()[other], in = output_->counts()[other];
  if (std::max(in, out) < own.exchange_from) return false;
  if (!copy_own(block_at(*input_, own.rank), input_->counts()[own.rank],
                block_at(*output_, own.rank), output_->counts()[own.rank])) {
    return false;
  }
  std::byte* const given = block_at(*input_, other);
  std::byte* const got = block_at(*output_, other);
  base_ = std::min(out > 0 ? given : got, in > 0 ? got : given);  // an empty one may lie anywhere
  const auto place = [this](const std::byte* block) {
    return reinterpret_cast<std::intptr_t>(block) - reinterpret_cast<std::intptr_t>(base_);
  };
  const auto mine = static_cast<std::size_t>(own.rank);
  lengths_[mine] = out;
  places_[mine] = out > 0 ? place(given) : 0;
  lengths_[1 - mine] = in;
  places_[1 - mine] = in > 0 ? place(got) : 0;
  return true;
}

int PairMove::call(const Communicator& own, unisono_request_t* request) {
  if (set_exchange(own)) {
    return invoke(request, library().allgatherv, library().allgatherv_start, UNISONO_IN_PLACE,
                  std::int64_t{0}, base_, lengths_.data(), places_.data(), UNISONO_BYTE,
                  own.unisono.get());
  }
  return invoke(request, library().alltoallv, library().alltoallv_start, from(), counts_of(input_),
                displacements_of(input_), to(), counts_of(output_), displacements_of(output_),
                UNISONO_BYTE, own.unisono.get());
}

bool AlltoallvCall::take(const Communicator& own, const void* send, Integers send_counts,
                         Integers send_displacements, Handle send_type, void* receive,
                         Integers receive_counts, Integers receive_displacements,
                         Handle receive_type, Handle comm) {
  in_place_ = is_in_place(send);
  if (!are_counts(receive_counts, receive_displacements, own.size)) return false;
  if (!set_output(receive, receive_counts, receive_displacements, own.size, receive_type, comm)) {
    return false;
  }
  if (in_place_) return true;
  return are_counts(send_counts, send_displacements, own.size) &&
         set_input(send, send_counts, send_displacements, own.size, send_type, comm);
}

std::int64_t AlltoallvCall::block_bytes(const Ranks& own, const void* send, Integers send_counts,
                                        Integers, Handle send_type, void*, Integers receive_counts,
                                        Integers, Handle receive_type, Handle) {
  return average_of_two(own, send, send_counts, send_type, receive_counts, receive_type);
}

// As bytes it is an alltoallv.
bool AlltoallwCall::take(const Communicator& own, const void* send, Integers send_counts,
                         Integers send_displacements, const void* send_types, void* receive,
                         Integers receive_counts, Integers receive_displacements,
                         const void* receive_types, Handle comm) {
  in_place_ = is_in_place(send);
  if (receive_types == nullptr || !are_counts(receive_counts, receive_displacements, own.size) ||
      !set_output(receive, receive_counts, receive_displacements, own.size, receive_types, comm)) {
    return false;
  }
  if (in_place_) return true;
  return send_types != nullptr && are_counts(send_counts, send_displacements, own.size) &&
         set_input(send, send_counts, send_displacements, own.size, send_types, comm);
}

std::int64_t AlltoallwCall::block_bytes(const Ranks& own, const void* send, Integers send_counts,
                                        Integers, const void* send_types, void*,
                                        Integers receive_counts, Integers,
                                        const void* receive_types, Handle) {
  return average_of_two(own, send, send_counts, send_types, receive_counts, receive_types);
}

}  // namespace unisono::mpi

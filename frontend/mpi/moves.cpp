// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move equal blocks. All go to Unisono as bytes, whatever their types: ranks
// may give different types of the same signature, so the type cannot decide.
#include "buffers.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "host/types.hpp"
#include "library.hpp"

namespace unisono::mpi::ours {
namespace {

int result(const Communicator& comm, int error) {
  return error == UNISONO_OK ? 0 : report_error(comm, error);
}

bool is_in_place(const void* buffer) { return buffer == host().constants.in_place; }

std::byte* block_at(void* buffer, int rank, std::int64_t bytes) {
  return static_cast<std::byte*>(buffer) + rank * bytes;
}

}  // namespace

int Bcast(void* buffer, int count, Handle type, int root, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Bcast);
  if (own == nullptr || count < 0 || root < 0 || root >= own->size) {
    return host().Bcast(buffer, count, type, root, comm);
  }
  Elements elements(buffer, count, type, comm);
  if (!elements.valid()) return host().Bcast(buffer, count, type, root, comm);
  const bool is_root = own->rank == root;
  elements.reserve();
  if (is_root) {
    if (const int error = elements.load(); error != 0) return error;
  }
  const int error =
      library().broadcast(elements.data(), elements.bytes(), UNISONO_BYTE, root, own->job);
  if (error != UNISONO_OK) return report_error(*own, error);
  return is_root ? 0 : elements.store();
}

int Allgather(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
              Handle receive_type, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Allgather);
  const auto by_host = [&] {
    return host().Allgather(send, send_count, send_type, receive, receive_count, receive_type,
                            comm);
  };
  const bool in_place = is_in_place(send);
  if (own == nullptr || receive_count < 0 || (!in_place && send_count < 0)) return by_host();
  Elements output(receive, std::int64_t{own->size} * receive_count, receive_type, comm);
  if (!output.valid()) return by_host();
  const std::int64_t block = receive_count * output.type_bytes();
  // Its own block lies in the output: all of that is packed, if any.
  if (in_place) {
    if (const int error = output.load(); error != 0) return error;
    const int error =
        library().allgather(UNISONO_IN_PLACE, output.data(), block, UNISONO_BYTE, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  Elements input(send, send_count, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const void* const from =
      input.data() == block_at(output.data(), own->rank, block) ? UNISONO_IN_PLACE : input.data();
  const int error = library().allgather(from, output.data(), input.bytes(), UNISONO_BYTE, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Gather(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
           Handle receive_type, int root, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Gather);
  const auto by_host = [&] {
    return host().Gather(send, send_count, send_type, receive, receive_count, receive_type, root,
                         comm);
  };
  if (own == nullptr || root < 0 || root >= own->size) return by_host();
  if (own->rank != root) {
    if (send_count < 0) return by_host();
    Elements input(send, send_count, send_type, comm);
    if (!input.valid()) return by_host();
    if (const int error = input.load(); error != 0) return error;
    return result(
        *own, library().gather(input.data(), nullptr, input.bytes(), UNISONO_BYTE, root, own->job));
  }
  const bool in_place = is_in_place(send);
  if (receive_count < 0 || (!in_place && send_count < 0)) return by_host();
  Elements output(receive, std::int64_t{own->size} * receive_count, receive_type, comm);
  if (!output.valid()) return by_host();
  const std::int64_t block = receive_count * output.type_bytes();
  if (in_place) {
    if (const int error = output.load(); error != 0) return error;
    const int error =
        library().gather(UNISONO_IN_PLACE, output.data(), block, UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  Elements input(send, send_count, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const int error =
      library().gather(input.data(), output.data(), block, UNISONO_BYTE, root, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Scatter(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
            Handle receive_type, int root, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Scatter);
  const auto by_host = [&] {
    return host().Scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                          comm);
  };
  if (own == nullptr || root < 0 || root >= own->size) return by_host();
  if (own->rank != root) {
    if (receive_count < 0) return by_host();
    Elements output(receive, receive_count, receive_type, comm);
    if (!output.valid()) return by_host();
    output.reserve();
    const int error =
        library().scatter(nullptr, output.data(), output.bytes(), UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  const bool in_place = is_in_place(receive);
  if (send_count < 0 || (!in_place && receive_count < 0)) return by_host();
  Elements input(send, std::int64_t{own->size} * send_count, send_type, comm);
  if (!input.valid()) return by_host();
  if (const int error = input.load(); error != 0) return error;
  const std::int64_t block = send_count * input.type_bytes();
  if (in_place) {
    return result(*own, library().scatter(input.data(), UNISONO_IN_PLACE, block, UNISONO_BYTE, root,
                                          own->job));
  }
  Elements output(receive, receive_count, receive_type, comm);
  if (!output.valid()) return by_host();
  output.reserve();
  const int error =
      library().scatter(input.data(), output.data(), block, UNISONO_BYTE, root, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Alltoall(const void* send, int send_count, Handle send_type, void* receive, int receive_count,
             Handle receive_type, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Alltoall);
  const auto by_host = [&] {
    return host().Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
  };
  const bool in_place = is_in_place(send);
  if (own == nullptr || receive_count < 0 || (!in_place && send_count < 0)) return by_host();
  Elements output(receive, std::int64_t{own->size} * receive_count, receive_type, comm);
  if (!output.valid()) return by_host();
  const std::int64_t block = receive_count * output.type_bytes();
  if (in_place) {
    if (const int error = output.load(); error != 0) return error;
    const int error =
        library().alltoall(UNISONO_IN_PLACE, output.data(), block, UNISONO_BYTE, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  Elements input(send, std::int64_t{own->size} * send_count, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const int error = library().alltoall(input.data(), output.data(), block, UNISONO_BYTE, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

}  // namespace unisono::mpi::ours

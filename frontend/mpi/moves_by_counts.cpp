// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move blocks with counts and displacements, as bytes.
#include <algorithm>

#include "buffers.hpp"
#include "collectives.hpp"
#include "communicator.hpp"
#include "host/host.hpp"
#include "library.hpp"

namespace unisono::mpi::ours {
namespace {

bool is_in_place(const void* buffer) { return buffer == host().constants.in_place; }

bool are_counts(const int* counts, const int* displacements, int blocks) {
  return counts != nullptr && displacements != nullptr &&
         std::all_of(counts, counts + blocks, [](int count) { return count >= 0; });
}

}  // namespace

int Allgatherv(const void* send, int send_count, Handle send_type, void* receive, const int* counts,
               const int* displacements, Handle receive_type, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Allgatherv);
  const auto by_host = [&] {
    return host().Allgatherv(send, send_count, send_type, receive, counts, displacements,
                             receive_type, comm);
  };
  const bool in_place = is_in_place(send);
  if (own == nullptr || !are_counts(counts, displacements, own->size)) return by_host();
  Elements output(receive, counts, displacements, own->size, receive_type, comm);
  if (!output.valid() || (!in_place && send_count < 0)) return by_host();
  if (in_place) {
    if (const int error = output.load(); error != 0) return error;
    const int error = library().allgatherv(UNISONO_IN_PLACE, 0, output.data(), output.counts(),
                                           output.displacements(), UNISONO_BYTE, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  Elements input(send, send_count, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const int error =
      library().allgatherv(input.data(), input.bytes(), output.data(), output.counts(),
                           output.displacements(), UNISONO_BYTE, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Gatherv(const void* send, int send_count, Handle send_type, void* receive, const int* counts,
            const int* displacements, Handle receive_type, int root, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Gatherv);
  const auto by_host = [&] {
    return host().Gatherv(send, send_count, send_type, receive, counts, displacements, receive_type,
                          root, comm);
  };
  if (own == nullptr || root < 0 || root >= own->size) return by_host();
  if (own->rank != root) {
    if (send_count < 0) return by_host();
    Elements input(send, send_count, send_type, comm);
    if (!input.valid()) return by_host();
    if (const int error = input.load(); error != 0) return error;
    const int error = library().gatherv(input.data(), input.bytes(), nullptr, nullptr, nullptr,
                                        UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? 0 : report_error(*own, error);
  }
  const bool in_place = is_in_place(send);
  if (!are_counts(counts, displacements, own->size) || (!in_place && send_count < 0)) {
    return by_host();
  }
  Elements output(receive, counts, displacements, own->size, receive_type, comm);
  if (!output.valid()) return by_host();
  if (in_place) {
    if (const int error = output.load(); error != 0) return error;
    const int error = library().gatherv(UNISONO_IN_PLACE, 0, output.data(), output.counts(),
                                        output.displacements(), UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  Elements input(send, send_count, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const int error = library().gatherv(input.data(), input.bytes(), output.data(), output.counts(),
                                      output.displacements(), UNISONO_BYTE, root, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Scatterv(const void* send, const int* counts, const int* displacements, Handle send_type,
             void* receive, int receive_count, Handle receive_type, int root, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Scatterv);
  const auto by_host = [&] {
    return host().Scatterv(send, counts, displacements, send_type, receive, receive_count,
                           receive_type, root, comm);
  };
  if (own == nullptr || root < 0 || root >= own->size) return by_host();
  if (own->rank != root) {
    if (receive_count < 0) return by_host();
    Elements output(receive, receive_count, receive_type, comm);
    if (!output.valid()) return by_host();
    output.reserve();
    const int error = library().scatterv(nullptr, nullptr, nullptr, output.data(), output.bytes(),
                                         UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  const bool in_place = is_in_place(receive);
  if (!are_counts(counts, displacements, own->size) || (!in_place && receive_count < 0)) {
    return by_host();
  }
  Elements input(send, counts, displacements, own->size, send_type, comm);
  if (!input.valid()) return by_host();
  if (const int error = input.load(); error != 0) return error;
  if (in_place) {
    const int error = library().scatterv(input.data(), input.counts(), input.displacements(),
                                         UNISONO_IN_PLACE, 0, UNISONO_BYTE, root, own->job);
    return error == UNISONO_OK ? 0 : report_error(*own, error);
  }
  Elements output(receive, receive_count, receive_type, comm);
  if (!output.valid()) return by_host();
  output.reserve();
  const int error = library().scatterv(input.data(), input.counts(), input.displacements(),
                                       output.data(), output.bytes(), UNISONO_BYTE, root, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

int Alltoallv(const void* send, const int* send_counts, const int* send_displacements,
              Handle send_type, void* receive, const int* receive_counts,
              const int* receive_displacements, Handle receive_type, Handle comm) {
  const Communicator* const own = find_communicator(comm, Collective::Alltoallv);
  const auto by_host = [&] {
    return host().Alltoallv(send, send_counts, send_displacements, send_type, receive,
                            receive_counts, receive_displacements, receive_type, comm);
  };
  if (own == nullptr || !are_counts(receive_counts, receive_displacements, own->size)) {
    return by_host();
  }
  Elements output(receive, receive_counts, receive_displacements, own->size, receive_type, comm);
  if (!output.valid()) return by_host();
  if (is_in_place(send)) {
    if (const int error = output.load(); error != 0) return error;
    const int error =
        library().alltoallv(UNISONO_IN_PLACE, nullptr, nullptr, output.data(), output.counts(),
                            output.displacements(), UNISONO_BYTE, own->job);
    return error == UNISONO_OK ? output.store() : report_error(*own, error);
  }
  if (!are_counts(send_counts, send_displacements, own->size)) return by_host();
  Elements input(send, send_counts, send_displacements, own->size, send_type, comm);
  if (!input.valid()) return by_host();
  output.reserve();
  if (const int error = input.load(); error != 0) return error;
  const int error =
      library().alltoallv(input.data(), input.counts(), input.displacements(), output.data(),
                          output.counts(), output.displacements(), UNISONO_BYTE, own->job);
  return error == UNISONO_OK ? output.store() : report_error(*own, error);
}

}  // namespace unisono::mpi::ours

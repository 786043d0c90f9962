// SPDX-License-Identifier: BSD-3-Clause
// Host: the MPI that the program has loaded. Its functions are taken from its library itself, so a
// call through Host never comes back to the drop-in. host() finds it at the first call; any thread.
#pragma once

#include <cstring>
#include <string>

#include "host/functions.hpp"

namespace unisono::mpi {

// `standard`: that of MPI 5, of libraries named libmpi_abi.
enum class Abi { none, open_mpi, mpich, standard, other };

// The values of mpi.h that differ between ABIs.
struct Constants {
  const void* in_place = nullptr;
  Handle comm_null = 0;
  Handle comm_world = 0;
  Handle comm_self = 0;
  Handle byte = 0;
  Handle float_type = 0;
  Handle sum = 0;
  void* status_ignore = nullptr;
  void* statuses_ignore = nullptr;
  std::size_t status_ints = 0;      // of which an MPI_Status has the length
  std::size_t error_in_status = 0;  // which of them is its MPI_ERROR
  Handle no_type = 0;
  Handle no_request = 0;
  int root = 0;  // MPI_ROOT; only where the MPI may lack functions with large counts
  int error_arg = 0, error_type = 0, error_request = 0, error_other = 0, error_no_mem = 0;
  int error_in_status_class = 0;
  int error_revoked = 0;
  int error_proc_failed = 0;  // 0: the MPI has no class for lost ranks, which MPI 5.0 lacks too
};

#define UNISONO_MPI_POINTER(name, parameters, ...) int(*name) parameters = nullptr;
#define UNISONO_MPI_POINTERS(name, nonblocking, parameters, ...)                      \
  UNISONO_MPI_POINTER(name, parameters)                                               \
  UNISONO_MPI_POINTER(nonblocking, (UNISONO_MPI_UNPACK parameters, Handle * request)) \
  UNISONO_MPI_POINTER(name##_init, (UNISONO_MPI_UNPACK parameters, Handle info, Handle * request))

// The collectives with counts of one kind. Those that the host MPI lacks are null.
template <class Count, class Offset>
struct HostCollectives {
  UNISONO_MPI_COUNTED(UNISONO_MPI_POINTERS)
  UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_POINTER)
};

struct Host : HostCollectives<int, int> {
  UNISONO_MPI_POINTERS(Barrier, Ibarrier, (Handle comm))
  HostCollectives<std::int64_t, std::ptrdiff_t> large;
  UNISONO_MPI_REQUESTS(UNISONO_MPI_POINTER)
  UNISONO_MPI_LATER_REQUESTS(UNISONO_MPI_POINTER)  // null: the host MPI lacks it
  UNISONO_MPI_PROBES(UNISONO_MPI_POINTER)
  UNISONO_MPI_LATER_USED(UNISONO_MPI_POINTER)  // null: the host MPI lacks it
  UNISONO_MPI_USED(UNISONO_MPI_POINTER)
#undef UNISONO_MPI_POINTERS
#undef UNISONO_MPI_POINTER

  Abi abi = Abi::none;
  std::string path;  // of its library
  Constants constants;
  Handle handle_mask = ~Handle{0};
  std::size_t handle_bytes = sizeof(Handle);    // of one in the program's memory
  std::uintptr_t code_begin = 0, code_end = 0;  // of its library
  void* library = nullptr;                      // for dlsym
  int (*progress)() = nullptr;                  // Open MPI's opal_progress; null: there is none
  // Open MPI's, which adds a function to what opal_progress() calls; null: there is none.
  int (*progress_register)(int (*function)()) = nullptr;
  // MPIX_Async_start of MPICH 4.3 and later, which adds a function to what MPICH calls while it
  // progresses, until that gives kAsyncDone; null: there is none.
  int (*start_async)(int (*poll)(void* thing), void* extra, int stream) = nullptr;
  static constexpr int kAsyncNoProgress = 0, kAsyncDone = 1, kNoStream = 0x3c000000;
  // MPICH's MPIX_Grequest_start, for requests with a function that MPI_Wait and MPI_Test call;
  // null: there is none.
  int (*start_polled)(QueryRequest* query, FreeRequest* free, CancelRequest* cancel,
                      PollRequest* poll, WaitForRequests* wait, void* extra,
                      Handle* request) = nullptr;
  bool has_sessions = false;
  // MPIX_Comm_test_threadcomm of MPICH; null: there is none.
  int (*test_threads)(Handle comm, int* flag) = nullptr;
  // Open MPI 5's: whether requests are of one session, whether a communicator is revoked, and
  // whether it can be. Null: there is none.
  bool (*have_one_instance)(void* requests, int count) = nullptr;
  int (*test_revoked)(Handle comm, int* flag) = nullptr;
  const bool* is_fault_tolerant = nullptr;
  // MPICH's, which makes an error code of a predefined class with a text; null: there is none.
  int (*create_code)(int, int, const char*, int, int, const char*, const char*, ...) = nullptr;

  // Whether the program's calls that wait complete the drop-in's calls, of all communicators.
  bool calls_back() const { return progress_register != nullptr; }
  Handle handle(Handle given) const { return given & handle_mask; }
  // A handle in the program's memory, where it may be an int: that at this index of an array.
  Handle handle_at(const void* array, int index = 0) const {
    Handle found = 0;
    std::memcpy(&found,
                static_cast<const char*>(array) + static_cast<std::size_t>(index) * handle_bytes,
                handle_bytes);
    return found;
  }
  // The handle's place in the array.
  Handle* place_at(void* array, int index) const {
    return reinterpret_cast<Handle*>(static_cast<char*>(array) +
                                     static_cast<std::size_t>(index) * handle_bytes);
  }
  // Whether the host's own code calls: its collectives within collectives are its own business.
  bool is_own_code(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= code_begin && at < code_end;
  }
};

// Looks for it. Ends the process with a message if no MPI is loaded.
const Host& find_host();
// Inline, because a call of a collective asks for it several times.
inline const Host& host() {
  static const Host& found = find_host();
  return found;
}

// The library with its version, as it calls itself, in one short line: "Open MPI v4.1.4".
std::string library_name();

// Where an object of the MPI library is, such as one that a handle points to. A program that is
// linked with the library may hold it itself (copy relocation). Null: there is none.
void* find_object(const Host& host, const char* name);

// The definition of an MPI function behind the drop-in, if it is not the host's. A profiling tool
// has one, which calls the PMPI function in turn. Null: there is none.
void* find_tool(const char* name);

}  // namespace unisono::mpi

// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

namespace unisono::mpi {
namespace {

// All loaded objects whose name begins like that of an MPI library.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  const auto look = [](dl_phdr_info* info, std::size_t, void* user) {
    const char* const name = info->dlpi_name;
    const char* const slash = std::strrchr(name, '/');
    if (std::strncmp(slash == nullptr ? name : slash + 1, "libmpi", 6) == 0) {
      static_cast<std::vector<std::string>*>(user)->emplace_back(name);
    }
    return 0;
  };
  dl_iterate_phdr(look, &paths);
  return paths;
}

// Whether the object itself defines the function: wrappers for Fortran find it in another one.
bool defines(const std::string& path, void* library, const char* function) {
  void* const address = dlsym(library, function);
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return false;
  char resolved[2][4096];
  if (realpath(path.c_str(), resolved[0]) == nullptr) return false;
  if (realpath(info.dli_fname, resolved[1]) == nullptr) return false;
  return std::strcmp(resolved[0], resolved[1]) == 0;
}

void find_code(Host& host) {
  struct Search {
    const std::string& path;
    Host& found;
  } search{host.path, host};
  const auto look = [](dl_phdr_info* info, std::size_t, void* user) {
    auto& wanted = *static_cast<Search*>(user);
    if (wanted.path != info->dlpi_name) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      wanted.found.code_begin = info->dlpi_addr + part.p_vaddr;
      wanted.found.code_end = wanted.found.code_begin + part.p_memsz;
    }
    return 1;
  };
  dl_iterate_phdr(look, &search);
}

template <class Pointer>
bool take(Pointer& pointer, void* library, const char* name) {
  pointer = reinterpret_cast<Pointer>(dlsym(library, name));
  return pointer != nullptr;
}

// Open MPI 4.1 has persistent collectives as an extension.
template <class Pointer>
void take_persistent(Pointer& pointer, void* library, const char* name) {
  for (const char* const prefix : {"PMPI_", "PMPIX_", "MPIX_"}) {
    if (take(pointer, library, (std::string(prefix) + name).c_str())) return;
  }
}

// False: one is missing that every MPI has.
bool take_functions(Host& host) {
  bool all = true;
#define UNISONO_MPI_TAKE(name, ...) all &= take(host.name, host.library, "PMPI_" #name);
#define UNISONO_MPI_TAKE_ALL(name, nonblocking, ...) \
  UNISONO_MPI_TAKE(name)                             \
  UNISONO_MPI_TAKE(nonblocking) take_persistent(host.name##_init, host.library, #name "_init");
#define UNISONO_MPI_TAKE_LARGE(name, nonblocking, ...)                   \
  take(host.large.name, host.library, "PMPI_" #name "_c");               \
  take(host.large.nonblocking, host.library, "PMPI_" #nonblocking "_c"); \
  take(host.large.name##_init, host.library, "PMPI_" #name "_init_c");
#define UNISONO_MPI_TAKE_NEIGHBOURS(name, ...)     \
  take_persistent(host.name, host.library, #name); \
  take(host.large.name, host.library, "PMPI_" #name "_c");
#define UNISONO_MPI_TAKE_LATER(name, ...) take(host.name, host.library, "PMPI_" #name);
  UNISONO_MPI_COLLECTIVES(UNISONO_MPI_TAKE_ALL)
  UNISONO_MPI_COUNTED(UNISONO_MPI_TAKE_LARGE)
  UNISONO_MPI_NEIGHBOURS(UNISONO_MPI_TAKE_NEIGHBOURS)
  UNISONO_MPI_REQUESTS(UNISONO_MPI_TAKE)
  UNISONO_MPI_LATER_REQUESTS(UNISONO_MPI_TAKE_LATER)
  UNISONO_MPI_LATER_USED(UNISONO_MPI_TAKE_LATER)
  UNISONO_MPI_PROBES(UNISONO_MPI_TAKE)
  UNISONO_MPI_USED(UNISONO_MPI_TAKE)
#undef UNISONO_MPI_TAKE_LATER
#undef UNISONO_MPI_TAKE_NEIGHBOURS
#undef UNISONO_MPI_TAKE_LARGE
#undef UNISONO_MPI_TAKE_ALL
#undef UNISONO_MPI_TAKE
  return all;
}

Constants open_mpi_constants(const Host& host) {
  const auto handle = [&host](const char* name) {
    return reinterpret_cast<Handle>(find_object(host, name));
  };
  Constants constants;
  constants.in_place = reinterpret_cast<const void*>(1);
  constants.comm_null = handle("ompi_mpi_comm_null");
  constants.comm_world = handle("ompi_mpi_comm_world");
  constants.comm_self = handle("ompi_mpi_comm_self");
  constants.byte = handle("ompi_mpi_byte");
  constants.float_type = handle("ompi_mpi_float");
  constants.sum = handle("ompi_mpi_op_sum");
  constants.no_type = handle("ompi_mpi_datatype_null");
  constants.no_request = handle("ompi_request_null");
  constants.root = -4;
  constants.status_ints = 6;
  constants.error_in_status = 2;
  constants.error_arg = 13;
  constants.error_type = 3;
  constants.error_request = 7;
  constants.error_other = 16;
  constants.error_no_mem = 39;
  constants.error_in_status_class = 18;
  if (dlsym(host.library, "PMPIX_Comm_revoke") != nullptr) {
    constants.error_proc_failed = 75;
    constants.error_revoked = 77;
  }
  return constants;
}

Constants mpich_constants() {
  Constants constants;
  constants.in_place = reinterpret_cast<const void*>(-1);
  constants.comm_null = 0x04000000;
  constants.comm_world = 0x44000000;
  constants.comm_self = 0x44000001;
  constants.byte = 0x4c00010d;
  constants.float_type = 0x4c00040a;
  constants.sum = 0x58000003;
  constants.no_type = 0x0c000000;
  constants.no_request = 0x2c000000;
  constants.root = -3;
  constants.status_ignore = reinterpret_cast<void*>(1);
  constants.statuses_ignore = reinterpret_cast<void*>(1);
  constants.status_ints = 5;
  constants.error_in_status = 4;
  constants.error_arg = 12;
  constants.error_type = 3;
  constants.error_request = 19;
  constants.error_other = 15;
  constants.error_no_mem = 34;
  constants.error_in_status_class = 17;
  constants.error_proc_failed = 101;
  return constants;
}

// The values of MPI 5.0, in its chapter on the ABI.
Constants standard_constants() {
  Constants constants;
  constants.in_place = reinterpret_cast<const void*>(1);
  constants.comm_null = 0x100;
  constants.comm_world = 0x101;
  constants.comm_self = 0x102;
  constants.byte = 0x247;
  constants.float_type = 0x210;
  constants.sum = 0x21;
  constants.no_type = 0x200;
  constants.no_request = 0x180;
  constants.status_ints = 8;
  constants.error_in_status = 2;
  constants.error_arg = 13;
  constants.error_type = 3;
  constants.error_request = 7;
  constants.error_other = 16;
  constants.error_no_mem = 39;
  constants.error_in_status_class = 19;
  return constants;
}

// MPIs with another ABI say so by a negative version, or lack the function.
bool has_standard_abi(void* library) {
  int (*version)(int* major, int* minor) = nullptr;
  int major = -1, minor = -1;
  return take(version, library, "PMPI_Abi_get_version") && version(&major, &minor) == 0 &&
         major > 0;
}

void recognize(Host& host) {
  take(host.progress, host.library, "opal_progress");
  take(host.progress_register, host.library, "opal_progress_register");
  take(host.test_threads, host.library, "PMPIX_Comm_test_threadcomm");
  take(host.have_one_instance, host.library, "ompi_request_check_same_instance");
  take(host.test_revoked, host.library, "PMPIX_Comm_is_revoked");
  take(host.is_fault_tolerant, host.library, "ompi_ftmpi_enabled");
  host.has_sessions = dlsym(host.library, "PMPI_Session_init") != nullptr;
  if (has_standard_abi(host.library)) {
    host.abi = Abi::standard;
    host.constants = standard_constants();
  } else if (dlsym(host.library, "ompi_mpi_comm_world") != nullptr) {
    host.abi = Abi::open_mpi;
    host.constants = open_mpi_constants(host);
  } else if (dlsym(host.library, "MPIR_F_MPI_IN_PLACE") != nullptr ||
             dlsym(host.library, "MPIR_Err_create_code") != nullptr ||
             dlsym(host.library, "MPID_Init") != nullptr ||
             dlsym(host.library, "MPIX_Grequest_start") != nullptr) {
    host.abi = Abi::mpich;
    host.constants = mpich_constants();
    host.handle_bytes = sizeof(int);
    host.handle_mask = 0xffffffff;
    take(host.create_code, host.library, "MPIR_Err_create_code");
    take(host.start_polled, host.library, "PMPIX_Grequest_start");
    take(host.start_async, host.library, "PMPIX_Async_start");
  } else {
    host.abi = Abi::other;
  }
}

Host look_for_host() {
  for (const std::string& path : candidates()) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    Host found;
    found.path = path;
    found.library = library;
    if (defines(path, library, "PMPI_Comm_get_attr") && take_functions(found)) {
      find_code(found);
      recognize(found);
      return found;
    }
  }
  std::fprintf(stderr,
               "unisono: pid %d calls an MPI function, and no MPI library is loaded "
               "(libmpi.so, libmpich.so); run it without the drop-in\n",
               static_cast<int>(getpid()));
  std::abort();
}

}  // namespace

std::string library_name() {
  constexpr std::size_t kMostText = 8192;  // MPICH's, the longest
  std::vector<char> text(kMostText + 1);
  int length = 0;
  if (host().Get_library_version(text.data(), &length) != 0) return "";
  const std::string whole(text.data());
  std::istringstream words(whole.substr(0, whole.find_first_of(",\n")));
  std::string name;
  for (std::string word; words >> word;) name += (name.empty() ? "" : " ") + word;
  return name;
}

void* find_object(const Host& host, const char* name) {
  void* const first = dlsym(RTLD_DEFAULT, name);
  return first != nullptr ? first : dlsym(host.library, name);
}

const Host& find_host() {
  static const Host* const found = new Host(look_for_host());  // never destroyed, as MPI may end
                                                               // after static objects
  return *found;
}

void* find_tool(const char* name) {
  void* const next = dlsym(RTLD_NEXT, name);
  Dl_info info{}, own{};
  if (next == nullptr || dladdr(next, &info) == 0) return nullptr;
  const void* const base = info.dli_fbase;
  if (dladdr(reinterpret_cast<void*>(host().Barrier), &own) != 0 && base == own.dli_fbase) {
    return nullptr;
  }
  return next;
}

}  // namespace unisono::mpi

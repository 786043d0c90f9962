// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/life/lasting.hpp"
#include "transport/ofi/kept_signal_actions.hpp"
#include "transport/ofi/ofi.hpp"

namespace unisono::transport {
namespace {

using base::Code;
using base::Error;

constexpr const char* kFile = "libfabric.so.1";

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

base::Result<OfiLibrary> load() {
  const KeptSignalActions kept;
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return Error{Code::unsupported,
                 fmt::format("{} could not be loaded (Debian: libfabric1): {}", kFile, dlerror())};
  }
  OfiLibrary result;
  const bool complete =
      find(library, "fi_getinfo", result.getinfo) &&
      find(library, "fi_freeinfo", result.freeinfo) &&
      find(library, "fi_dupinfo", result.dupinfo) && find(library, "fi_fabric", result.fabric) &&
      find(library, "fi_strerror", result.strerror) && find(library, "fi_version", result.version);
  if (!complete) {
    return Error{Code::unsupported, fmt::format("{} is not libfabric: {}", kFile, dlerror())};
  }
  return result;
}

}  // namespace

const base::Result<OfiLibrary>& ofi_library() {
  static const base::Result<OfiLibrary>& library = base::lasting(load());
  return library;
}

std::string ofi_description() {
  const auto& library = ofi_library();
  if (!library.ok()) return library.error().message;
  const std::uint32_t version = library->version();
  return fmt::format("libfabric {}.{}", FI_MAJOR(version), FI_MINOR(version));
}

}  // namespace unisono::transport

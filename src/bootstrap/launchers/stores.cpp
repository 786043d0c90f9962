// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/launchers/stores.hpp"

#include <dlfcn.h>

#include "bootstrap/launchers/pmi_store.hpp"
#include "bootstrap/launchers/pmix_store.hpp"

namespace unisono::bootstrap {

base::Result<std::unique_ptr<KeyValueStore>> open_store(const StoreOptions& options) {
  const bool with_mpi = dlsym(RTLD_DEFAULT, "MPI_Initialized") != nullptr;
  switch (options.kind) {
    case StoreKind::pmi:
      return PmiStore::open(options, with_mpi);
    case StoreKind::pmix:
      return open_pmix_store(options, with_mpi);
    case StoreKind::none:
      break;
  }
  return base::Error{base::Code::unsupported, "the launcher has no key-value store (PMI, PMIx)"};
}

}  // namespace unisono::bootstrap

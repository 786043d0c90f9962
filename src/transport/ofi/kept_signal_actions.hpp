// SPDX-License-Identifier: BSD-3-Clause
// KeptSignalActions: restores the process's signal actions when it is destroyed. libpsm2, which
// Debian's libfabric loads, installs handlers for crashes, SIGINT and SIGTERM when it is loaded or
// first used. Control path; not while another thread sets signal actions.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

namespace unisono::transport {

class KeptSignalActions {
 public:
  KeptSignalActions() {
    for (int signal = 1; signal < NSIG; ++signal) {
      auto& kept = kept_[static_cast<std::size_t>(signal)];
      kept.known = sigaction(signal, nullptr, &kept.action) == 0;
    }
  }
  ~KeptSignalActions() {
    for (int signal = 1; signal < NSIG; ++signal) {
      const auto& kept = kept_[static_cast<std::size_t>(signal)];
      if (kept.known) sigaction(signal, &kept.action, nullptr);
    }
  }
  KeptSignalActions(const KeptSignalActions&) = delete;
  KeptSignalActions& operator=(const KeptSignalActions&) = delete;

 private:
  struct Kept {
    struct sigaction action {};
    bool known = false;
  };
  std::array<Kept, NSIG> kept_;
};

}  // namespace unisono::transport

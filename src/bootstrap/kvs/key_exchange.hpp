// SPDX-License-Identifier: BSD-3-Clause
// How ranks get a common key over a launcher's key-value store or a caller's exchange, which other
// processes may read. Each rank publishes an ephemeral public key (X25519). Rank 0 makes the job's
// key. A rank that has it seals it for another one, with a key derived from its own pair and that
// rank's (libsodium: crypto_kx, crypto_secretbox). A reader learns nothing of the job's key. A
// process that can change what is published can pretend to be a rank, since nothing proves the
// owner of a public key.
// Destructors overwrite what is secret. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace unisono::bootstrap {

using PublicKey = std::array<std::uint8_t, 32>;
// A JobSecret and 16 bytes that reveal any change of it.
using SealedSecret = std::array<std::uint8_t, 16 + 16>;

// Random bytes from which the job's key is made.
class JobSecret {
 public:
  static base::Result<JobSecret> random();
  JobSecret() = default;
  JobSecret(const JobSecret&) = default;
  JobSecret& operator=(const JobSecret&) = default;
  ~JobSecret();

  // Fit for UNISONO_JOB_KEY.
  std::string key_text() const;
  bool operator==(const JobSecret&) const = default;

 private:
  friend class EphemeralKeys;
  std::array<std::uint8_t, 16> bytes_{};
};

// Overwrites a secret text.
void wipe(std::string& text);

// One rank's pair of keys, for one job.
class EphemeralKeys {
 public:
  static base::Result<EphemeralKeys> make();
  EphemeralKeys(const EphemeralKeys&) = default;
  EphemeralKeys& operator=(const EphemeralKeys&) = default;
  ~EphemeralKeys();

  const PublicKey& public_key() const { return public_; }
  // By a rank that has the secret, once for each other rank of a job. Errors: state (no rank makes
  // such a public key).
  base::Result<SealedSecret> seal(const JobSecret& secret, const PublicKey& rank) const;
  // By the other ranks. `from`: of the rank that has sealed it. Errors: state (it was sealed for or
  // by another public key, or was changed).
  base::Result<JobSecret> open(const SealedSecret& sealed, const PublicKey& from) const;

 private:
  EphemeralKeys() = default;

  PublicKey public_{};
  std::array<std::uint8_t, 32> secret_{};
};

}  // namespace unisono::bootstrap

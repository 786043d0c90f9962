// SPDX-License-Identifier: BSD-3-Clause
// How ranks get a common key over a launcher's board, which others may read: each rank publishes an
// ephemeral public key (X25519). Rank 0 makes the job's key and seals it for each rank, with a key
// that follows from its own pair and that rank's (libsodium: crypto_kx, crypto_secretbox).
// Whoever reads the board learns nothing of the job's key. Whoever can write there can pretend to
// be a rank: nothing says whose a public key is. What is secret is overwritten when its object
// ends. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace unisono::bootstrap {

using PublicKey = std::array<std::uint8_t, 32>;
// A JobSecret and 16 bytes by which a change of it is seen.
using SealedSecret = std::array<std::uint8_t, 16 + 16>;

// Random bytes that stand for the job's key.
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

// Overwrites a text that is secret.
void wipe(std::string& text);

// One rank's pair of keys, for one job.
class EphemeralKeys {
 public:
  static base::Result<EphemeralKeys> make();
  EphemeralKeys(const EphemeralKeys&) = default;
  EphemeralKeys& operator=(const EphemeralKeys&) = default;
  ~EphemeralKeys();

  const PublicKey& public_key() const { return public_; }
  // Rank 0, once for each other rank and job. Errors: state (no rank makes such a public key).
  base::Result<SealedSecret> seal(const JobSecret& secret, const PublicKey& rank) const;
  // The others. Errors: state (it was sealed for another public key, or by another one, or has been
  // changed).
  base::Result<JobSecret> open(const SealedSecret& sealed, const PublicKey& rank0) const;

 private:
  EphemeralKeys() = default;

  PublicKey public_{};
  std::array<std::uint8_t, 32> secret_{};
};

}  // namespace unisono::bootstrap

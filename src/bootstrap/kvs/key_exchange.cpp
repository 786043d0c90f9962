// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/key_exchange.hpp"

#include <fmt/format.h>
#include <sodium.h>

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Error;
using base::Result;

static_assert(std::tuple_size_v<PublicKey> == crypto_kx_PUBLICKEYBYTES);
static_assert(crypto_kx_SECRETKEYBYTES == 32);
static_assert(crypto_kx_SESSIONKEYBYTES == crypto_secretbox_KEYBYTES);
static_assert(std::tuple_size_v<SealedSecret> == 16 + crypto_secretbox_MACBYTES);

base::Status start_library() {
  if (sodium_init() >= 0) return base::success();
  return Error{Code::system,
               "libsodium cannot be initialized: the system gives it no random numbers"};
}

// A session key seals one message only, so all messages may have the same nonce.
constexpr std::array<std::uint8_t, crypto_secretbox_NONCEBYTES> kNonce{};

// The two keys of a pair of ranks, one for each direction.
struct SessionKeys {
  std::array<std::uint8_t, crypto_kx_SESSIONKEYBYTES> receive{};
  std::array<std::uint8_t, crypto_kx_SESSIONKEYBYTES> send{};
  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = delete;
  SessionKeys& operator=(const SessionKeys&) = delete;
  ~SessionKeys() {
    sodium_memzero(receive.data(), receive.size());
    sodium_memzero(send.data(), send.size());
  }
};

Error unusable() {
  return {Code::state,
          "a published public key is not one that a rank makes; another process has changed it "
          "in the launcher's key-value store or in the exchange"};
}

}  // namespace

Result<JobSecret> JobSecret::random() {
  UNISONO_TRY(start_library());
  JobSecret secret;
  randombytes_buf(secret.bytes_.data(), secret.bytes_.size());
  return secret;
}

JobSecret::~JobSecret() { sodium_memzero(bytes_.data(), bytes_.size()); }

std::string JobSecret::key_text() const {
  std::string text(2 * bytes_.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_.data(), bytes_.size());
  text.pop_back();
  return text;
}

void wipe(std::string& text) { sodium_memzero(text.data(), text.size()); }

Result<EphemeralKeys> EphemeralKeys::make() {
  UNISONO_TRY(start_library());
  EphemeralKeys keys;
  crypto_kx_keypair(keys.public_.data(), keys.secret_.data());
  return keys;
}

EphemeralKeys::~EphemeralKeys() { sodium_memzero(secret_.data(), secret_.size()); }

Result<SealedSecret> EphemeralKeys::seal(const JobSecret& secret, const PublicKey& rank) const {
  SessionKeys keys;
  if (crypto_kx_server_session_keys(keys.receive.data(), keys.send.data(), public_.data(),
                                    secret_.data(), rank.data()) != 0) {
    return unusable();
  }
  SealedSecret sealed{};
  crypto_secretbox_easy(sealed.data(), secret.bytes_.data(), secret.bytes_.size(), kNonce.data(),
                        keys.send.data());
  return sealed;
}

Result<JobSecret> EphemeralKeys::open(const SealedSecret& sealed, const PublicKey& from) const {
  SessionKeys keys;
  if (crypto_kx_client_session_keys(keys.receive.data(), keys.send.data(), public_.data(),
                                    secret_.data(), from.data()) != 0) {
    return unusable();
  }
  JobSecret secret;
  if (crypto_secretbox_open_easy(secret.bytes_.data(), sealed.data(), sealed.size(), kNonce.data(),
                                 keys.receive.data()) != 0) {
    return Error{
        Code::state,
        "the job's key was not sealed for this rank: another process has changed the values "
        "in the launcher's key-value store or in the exchange"};
  }
  return secret;
}

}  // namespace unisono::bootstrap

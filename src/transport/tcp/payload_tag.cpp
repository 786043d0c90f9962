// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/payload_tag.hpp"

#include <sodium.h>

#include <cstring>
#include <new>

#include "transport/tcp/libcrypto.hpp"

namespace unisono::transport {
namespace {

constexpr std::size_t kNonceBytes = 12;
using Nonce = std::array<unsigned char, kNonceBytes>;

Nonce nonce_of(std::uint64_t number) {
  Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) {
    nonce[i] = static_cast<unsigned char>((number >> (8 * i)) & 0xff);
  }
  return nonce;
}

class SodiumTagger final : public PayloadTagger {
 public:
  explicit SodiumTagger(const PayloadKey& key) {
    crypto_aead_aes256gcm_beforenm(&state_, reinterpret_cast<const unsigned char*>(key.data()));
  }
  ~SodiumTagger() override { sodium_memzero(&state_, sizeof state_); }

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    const Nonce nonce = nonce_of(number);
    PayloadTag tag{};
    unsigned char none = 0;
    crypto_aead_aes256gcm_encrypt_detached_afternm(
        &none, reinterpret_cast<unsigned char*>(tag.data()), nullptr, &none, 0,
        reinterpret_cast<const unsigned char*>(payload.data()), payload.size(), nullptr,
        nonce.data(), &state_);
    return tag;
  }

 private:
  alignas(16) crypto_aead_aes256gcm_state state_;
};

class CryptoTagger final : public PayloadTagger {
 public:
  CryptoTagger(const Libcrypto& library, const PayloadKey& key) : state_(library.new_gmac(key)) {}
  bool is_made() const { return state_ != nullptr; }

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    return state_->tag(nonce_of(number), payload);
  }

 private:
  std::unique_ptr<Gmac> state_;
};

}  // namespace

bool can_tag(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::crypto:
      return libcrypto() != nullptr;
    case PayloadTagger::Library::sodium:
      return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() == 1;
  }
  return false;
}

std::string_view library_name(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::crypto:
      return "libcrypto";
    case PayloadTagger::Library::sodium:
      return "libsodium";
  }
  return "";
}

base::Result<PayloadTagger::Library> PayloadTagger::choose() {
  for (const Library library : {Library::crypto, Library::sodium}) {
    if (can_tag(library)) return library;
  }
  return base::Error{base::Code::unsupported,
                     "tags at the speed of memory need libcrypto.so.3 (Debian: libssl3), or a "
                     "processor with AES instructions for libsodium"};
}

std::unique_ptr<PayloadTagger> make_payload_tagger(PayloadTagger::Library library,
                                                   const PayloadKey& key) {
  if (library == PayloadTagger::Library::sodium) {
    return std::unique_ptr<PayloadTagger>(new (std::nothrow) SodiumTagger(key));
  }
  const Libcrypto* const crypto = libcrypto();
  if (crypto == nullptr) return nullptr;
  auto tagger = std::make_unique<CryptoTagger>(*crypto, key);
  if (!tagger->is_made()) return nullptr;
  return tagger;
}

}  // namespace unisono::transport

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/payload_tag.hpp"

#include <sodium.h>

#include <new>

#include "transport/tcp/libcrypto.hpp"
#include "transport/tcp/little_endian.hpp"

namespace unisono::transport {
namespace {

using FrameKey = std::array<unsigned char, 32>;

FrameKey frame_key(const PayloadKey& key, std::uint64_t number) {
  std::array<std::byte, sizeof number> bytes;
  store_little_endian(bytes.data(), number);
  FrameKey result;
  crypto_generichash(result.data(), result.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                     reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return result;
}

class SodiumTagger final : public PayloadTagger {
 public:
  explicit SodiumTagger(const PayloadKey& key) : key_(key) {}

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    PayloadTag tag{};
    crypto_onetimeauth(reinterpret_cast<unsigned char*>(tag.data()),
                       reinterpret_cast<const unsigned char*>(payload.data()), payload.size(),
                       frame_key(key_, number).data());
    return tag;
  }

 private:
  PayloadKey key_;
};

class CryptoTagger final : public PayloadTagger {
 public:
  CryptoTagger(const Libcrypto& library, const PayloadKey& key)
      : key_(key), state_(library.new_poly1305()) {}
  bool is_made() const { return state_ != nullptr; }

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    return state_->tag(frame_key(key_, number), payload);
  }

 private:
  PayloadKey key_;
  std::unique_ptr<Poly1305> state_;
};

}  // namespace

bool can_tag(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::crypto:
      return libcrypto() != nullptr;
    case PayloadTagger::Library::sodium:
      return sodium_init() >= 0;
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

PayloadTagger::Library PayloadTagger::choose() {
  return can_tag(Library::crypto) ? Library::crypto : Library::sodium;
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

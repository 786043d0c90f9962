// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tags/payload_tag.hpp"

#include <sodium.h>

#include <new>

#include "transport/tcp/little_endian.hpp"
#include "transport/tcp/tags/aegis.hpp"
#include "transport/tcp/tags/libcrypto.hpp"
#include "transport/tcp/tags/libipsec_mb.hpp"

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

class GmacTagger final : public PayloadTagger {
 public:
  GmacTagger(const LibipsecMb& library, const PayloadKey& key)
      : state_(library.new_gmac(std::span(key).first<16>())) {}
  bool is_made() const { return state_ != nullptr; }

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    return state_->tag(number, payload);
  }

 private:
  std::unique_ptr<Gmac> state_;
};

class AegisTagger final : public PayloadTagger {
 public:
  AegisTagger(Aegis::Width width, const PayloadKey& key)
      : aegis_(width, std::span(key).first<16>()) {}

  PayloadTag tag(std::uint64_t number, std::span<const std::byte> payload) override {
    return aegis_.tag(number, payload);
  }

 private:
  Aegis aegis_;
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

class NoTagger final : public PayloadTagger {
 public:
  PayloadTag tag(std::uint64_t, std::span<const std::byte>) override { return {}; }
};

}  // namespace

bool can_tag(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::ipsec_mb:
      return libipsec_mb() != nullptr;
    case PayloadTagger::Library::own_wide:
      return Aegis::is_supported(Aegis::Width::two_blocks);
    case PayloadTagger::Library::own:
      return Aegis::is_supported(Aegis::Width::one_block);
    case PayloadTagger::Library::crypto:
      return libcrypto() != nullptr;
    case PayloadTagger::Library::sodium:
      return sodium_init() >= 0;
    case PayloadTagger::Library::none:
      return true;
  }
  return false;
}

std::string_view library_name(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::ipsec_mb:
      return "libIPSec_MB";
    case PayloadTagger::Library::own_wide:
      return "AEGIS-128X2";
    case PayloadTagger::Library::own:
      return "AEGIS-128L";
    case PayloadTagger::Library::crypto:
      return "libcrypto";
    case PayloadTagger::Library::sodium:
      return "libsodium";
    case PayloadTagger::Library::none:
      return "none";
  }
  return "";
}

TagKind kind_of(PayloadTagger::Library library) {
  switch (library) {
    case PayloadTagger::Library::ipsec_mb:
      return TagKind::gmac;
    case PayloadTagger::Library::own_wide:
      return TagKind::aegis_x2;
    case PayloadTagger::Library::own:
      return TagKind::aegis;
    case PayloadTagger::Library::none:
      return TagKind::none;
    case PayloadTagger::Library::crypto:
    case PayloadTagger::Library::sodium:
      break;
  }
  return TagKind::poly1305;
}

TagKind fastest_tags() {
  using Library = PayloadTagger::Library;
  for (const Library library : {Library::ipsec_mb, Library::own_wide, Library::own}) {
    if (can_tag(library)) return kind_of(library);
  }
  return TagKind::poly1305;
}

TagKind common_tags(TagKind one, TagKind other) {
  if (one == other) return one;
  const auto either_is = [&](TagKind kind) { return one == kind || other == kind; };
  if (either_is(TagKind::none) || either_is(TagKind::poly1305)) return TagKind::poly1305;
  return either_is(TagKind::aegis) ? TagKind::aegis : TagKind::aegis_x2;
}

PayloadTagger::Library PayloadTagger::choose(TagKind kind) {
  switch (kind) {
    case TagKind::none:
      return Library::none;
    case TagKind::gmac:
      return Library::ipsec_mb;
    case TagKind::aegis:
      return Library::own;
    case TagKind::aegis_x2:
      return Library::own_wide;
    case TagKind::poly1305:
      break;
  }
  return can_tag(Library::crypto) ? Library::crypto : Library::sodium;
}

std::unique_ptr<PayloadTagger> make_payload_tagger(PayloadTagger::Library library,
                                                   const PayloadKey& key) {
  if (library == PayloadTagger::Library::none) {
    return std::unique_ptr<PayloadTagger>(new (std::nothrow) NoTagger);
  }
  if (library == PayloadTagger::Library::own || library == PayloadTagger::Library::own_wide) {
    const auto width =
        library == PayloadTagger::Library::own ? Aegis::Width::one_block : Aegis::Width::two_blocks;
    return std::unique_ptr<PayloadTagger>(new (std::nothrow) AegisTagger(width, key));
  }
  if (library == PayloadTagger::Library::sodium) {
    return std::unique_ptr<PayloadTagger>(new (std::nothrow) SodiumTagger(key));
  }
  if (library == PayloadTagger::Library::ipsec_mb) {
    const LibipsecMb* const ipsec_mb = libipsec_mb();
    if (ipsec_mb == nullptr) return nullptr;
    auto tagger = std::make_unique<GmacTagger>(*ipsec_mb, key);
    if (!tagger->is_made()) return nullptr;
    return tagger;
  }
  const Libcrypto* const crypto = libcrypto();
  if (crypto == nullptr) return nullptr;
  auto tagger = std::make_unique<CryptoTagger>(*crypto, key);
  if (!tagger->is_made()) return nullptr;
  return tagger;
}

}  // namespace unisono::transport

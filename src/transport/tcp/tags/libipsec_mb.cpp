// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tags/libipsec_mb.hpp"

#if __has_include(<intel-ipsec-mb.h>)
#include <dlfcn.h>
#include <intel-ipsec-mb.h>
#endif

#if defined(IMB_VERSION_NUM) && defined(IMB_AES128_GMAC_UPDATE)
#include <algorithm>
#include <new>
#include <string>

#include "transport/tcp/little_endian.hpp"

namespace unisono::transport {
namespace {

// The version of the headers: the library's structures have its layout.
constexpr unsigned kHeadersMajor = IMB_VERSION_NUM >> 16;
constexpr std::size_t kNonceBytes = 12;

struct IpsecMbFunctions {
  decltype(&imb_get_version) version = nullptr;
  decltype(&alloc_mb_mgr) new_manager = nullptr;
  decltype(&free_mb_mgr) free_manager = nullptr;
  decltype(&init_mb_mgr_auto) begin = nullptr;
};

template <class Function>
bool look_up_ipsec_mb(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// It stays loaded, as libcrypto does.
bool load_ipsec_mb(IpsecMbFunctions& found) {
  const std::string name = "libIPSec_MB.so." + std::to_string(kHeadersMajor);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return false;
  return look_up_ipsec_mb(library, "imb_get_version", found.version) &&
         look_up_ipsec_mb(library, "alloc_mb_mgr", found.new_manager) &&
         look_up_ipsec_mb(library, "free_mb_mgr", found.free_manager) &&
         look_up_ipsec_mb(library, "init_mb_mgr_auto", found.begin) &&
         found.version() >= IMB_VERSION_NUM && found.version() >> 16 == kHeadersMajor;
}

class IpsecMbGmac final : public Gmac {
 public:
  IpsecMbGmac(const IMB_MGR& manager, std::span<const std::byte, 16> key) : manager_(manager) {
    IMB_AES128_GCM_PRE(&manager_, key.data(), &key_);
  }

  std::array<std::byte, 16> tag(std::uint64_t number, std::span<const std::byte> bytes) override {
    std::array<std::uint8_t, kNonceBytes> nonce{};
    store_little_endian(reinterpret_cast<std::byte*>(nonce.data()), number);
    gcm_context_data context;
    std::array<std::byte, 16> tag{};
    IMB_AES128_GMAC_INIT(&manager_, &key_, &context, nonce.data(), nonce.size());
    IMB_AES128_GMAC_UPDATE(&manager_, &key_, &context,
                           reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    IMB_AES128_GMAC_FINALIZE(&manager_, &key_, &context,
                             reinterpret_cast<std::uint8_t*>(tag.data()), tag.size());
    return tag;
  }

 private:
  const IMB_MGR& manager_;
  gcm_key_data key_;
};

class LoadedIpsecMb final : public LibipsecMb {
 public:
  explicit LoadedIpsecMb(const IMB_MGR& manager) : manager_(manager) {}
  bool is_fast() const {
    return (manager_.features & IMB_CPUFLAGS_AVX512_T2) == IMB_CPUFLAGS_AVX512_T2;
  }
  bool is_right() const;
  std::unique_ptr<Gmac> new_gmac(std::span<const std::byte, 16> key) const override {
    return std::unique_ptr<Gmac>(new (std::nothrow) IpsecMbGmac(manager_, key));
  }

 private:
  const IMB_MGR& manager_;  // kept, as the library is
};

// A library of another layout would compute something else. The tag is libcrypto's.
bool LoadedIpsecMb::is_right() const {
  constexpr std::array<unsigned char, 16> kExpected = {0xaf, 0x92, 0xf1, 0xca, 0xe3, 0xf7,
                                                       0x4b, 0xd5, 0xb0, 0xe7, 0xa2, 0x29,
                                                       0x23, 0xe2, 0xa9, 0x4b};
  std::array<std::byte, 16> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(i);
  std::array<std::byte, 1000> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 250);
  const auto gmac = new_gmac(key);
  return gmac != nullptr &&
         std::ranges::equal(gmac->tag(5, bytes), std::as_bytes(std::span(kExpected)));
}

std::unique_ptr<LoadedIpsecMb> try_ipsec_mb() {
  IpsecMbFunctions functions;
  if (!load_ipsec_mb(functions)) return nullptr;
  IMB_MGR* const manager = functions.new_manager(0);
  if (manager == nullptr) return nullptr;
  IMB_ARCH arch = IMB_ARCH_NONE;
  functions.begin(manager, &arch);
  auto loaded = std::make_unique<LoadedIpsecMb>(*manager);
  if (loaded->is_fast() && loaded->is_right()) return loaded;
  functions.free_manager(manager);
  return nullptr;
}

}  // namespace

const LibipsecMb* libipsec_mb() {
  // Never destroyed, for threads that outlive the exit handlers.
  static const LibipsecMb* const loaded = try_ipsec_mb().release();
  return loaded;
}

}  // namespace unisono::transport
#else

namespace unisono::transport {
const LibipsecMb* libipsec_mb() { return nullptr; }
}  // namespace unisono::transport

#endif

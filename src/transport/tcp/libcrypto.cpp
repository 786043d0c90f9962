// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/libcrypto.hpp"

#if __has_include(<openssl/evp.h>)
#include <dlfcn.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/check.hpp"

namespace unisono::transport {
namespace {

// The functions of libcrypto that are used; their signatures are those of OpenSSL 3.
struct Functions {
  decltype(&OPENSSL_init_crypto) init = nullptr;
  decltype(&EVP_CIPHER_CTX_new) new_context = nullptr;
  decltype(&EVP_CIPHER_CTX_free) free_context = nullptr;
  decltype(&EVP_CIPHER_CTX_ctrl) control = nullptr;
  decltype(&EVP_aes_256_gcm) cipher = nullptr;
  decltype(&EVP_EncryptInit_ex) begin = nullptr;
  decltype(&EVP_EncryptUpdate) update = nullptr;
  decltype(&EVP_EncryptFinal_ex) end = nullptr;
};

template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// It stays loaded: agents may compute tags until the process ends.
bool load(Functions& found) {
  void* const library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return false;
  return look_up(library, "OPENSSL_init_crypto", found.init) &&
         look_up(library, "EVP_CIPHER_CTX_new", found.new_context) &&
         look_up(library, "EVP_CIPHER_CTX_free", found.free_context) &&
         look_up(library, "EVP_CIPHER_CTX_ctrl", found.control) &&
         look_up(library, "EVP_aes_256_gcm", found.cipher) &&
         look_up(library, "EVP_EncryptInit_ex", found.begin) &&
         look_up(library, "EVP_EncryptUpdate", found.update) &&
         look_up(library, "EVP_EncryptFinal_ex", found.end);
}

class CryptoGmac final : public Gmac {
 public:
  CryptoGmac(const Functions& functions, EVP_CIPHER_CTX* context)
      : functions_(functions), context_(context) {}
  ~CryptoGmac() override { functions_.free_context(context_); }
  CryptoGmac(const CryptoGmac&) = delete;
  CryptoGmac& operator=(const CryptoGmac&) = delete;

  std::array<std::byte, 16> tag(std::span<const unsigned char, 12> nonce,
                                std::span<const std::byte> bytes) override {
    std::array<std::byte, 16> tag{};
    int length = 0;
    unsigned char rest[16];
    const bool done = functions_.begin(context_, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
                      functions_.update(context_, nullptr, &length,
                                        reinterpret_cast<const unsigned char*>(bytes.data()),
                                        static_cast<int>(bytes.size())) == 1 &&
                      functions_.end(context_, rest, &length) == 1 &&
                      functions_.control(context_, EVP_CTRL_AEAD_GET_TAG,
                                         static_cast<int>(tag.size()), tag.data()) == 1;
    UNISONO_CHECK(done, "libcrypto computes a tag");
    return tag;
  }

 private:
  const Functions& functions_;
  EVP_CIPHER_CTX* context_;
};

class Loaded final : public Libcrypto {
 public:
  explicit Loaded(const Functions& functions) : functions_(functions) {
    // Threads may still use it when the process's exit handlers run.
    functions_.init(OPENSSL_INIT_NO_ATEXIT, nullptr);
  }
  std::unique_ptr<Gmac> new_gmac(const std::array<std::byte, 32>& key) const override {
    EVP_CIPHER_CTX* const context = functions_.new_context();
    if (context == nullptr) return nullptr;
    auto gmac = std::make_unique<CryptoGmac>(functions_, context);
    if (functions_.begin(context, functions_.cipher(), nullptr,
                         reinterpret_cast<const unsigned char*>(key.data()), nullptr) != 1) {
      return nullptr;
    }
    return gmac;
  }

 private:
  Functions functions_;
};

std::unique_ptr<Loaded> try_to_load() {
  Functions functions;
  if (!load(functions)) return nullptr;
  return std::make_unique<Loaded>(functions);
}

}  // namespace

const Libcrypto* libcrypto() {
  // Never destroyed, for threads that outlive the exit handlers.
  static const Libcrypto* const loaded = try_to_load().release();
  return loaded;
}

}  // namespace unisono::transport

#else

namespace unisono::transport {
const Libcrypto* libcrypto() { return nullptr; }
}  // namespace unisono::transport

#endif

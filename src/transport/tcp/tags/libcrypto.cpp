// SPDX-License-Identifier: BSD-3-Clause
#include "transport/tcp/tags/libcrypto.hpp"

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
  decltype(&EVP_MAC_fetch) fetch = nullptr;
  decltype(&EVP_MAC_CTX_new) new_context = nullptr;
  decltype(&EVP_MAC_CTX_free) free_context = nullptr;
  decltype(&EVP_MAC_init) begin = nullptr;
  decltype(&EVP_MAC_update) update = nullptr;
  decltype(&EVP_MAC_final) end = nullptr;
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
         look_up(library, "EVP_MAC_fetch", found.fetch) &&
         look_up(library, "EVP_MAC_CTX_new", found.new_context) &&
         look_up(library, "EVP_MAC_CTX_free", found.free_context) &&
         look_up(library, "EVP_MAC_init", found.begin) &&
         look_up(library, "EVP_MAC_update", found.update) &&
         look_up(library, "EVP_MAC_final", found.end);
}

class CryptoPoly1305 final : public Poly1305 {
 public:
  CryptoPoly1305(const Functions& functions, EVP_MAC_CTX* context)
      : functions_(functions), context_(context) {}
  ~CryptoPoly1305() override { functions_.free_context(context_); }
  CryptoPoly1305(const CryptoPoly1305&) = delete;
  CryptoPoly1305& operator=(const CryptoPoly1305&) = delete;

  std::array<std::byte, 16> tag(std::span<const unsigned char, 32> key,
                                std::span<const std::byte> bytes) override {
    std::array<std::byte, 16> tag{};
    std::size_t length = 0;
    const bool done =
        functions_.begin(context_, key.data(), key.size(), nullptr) == 1 &&
        functions_.update(context_, reinterpret_cast<const unsigned char*>(bytes.data()),
                          bytes.size()) == 1 &&
        functions_.end(context_, reinterpret_cast<unsigned char*>(tag.data()), &length,
                       tag.size()) == 1;
    UNISONO_CHECK(done && length == tag.size(), "libcrypto computes a tag");
    return tag;
  }

 private:
  const Functions& functions_;
  EVP_MAC_CTX* context_;
};

class Loaded final : public Libcrypto {
 public:
  explicit Loaded(const Functions& functions) : functions_(functions) {
    // Threads may still use it when the process's exit handlers run.
    functions_.init(OPENSSL_INIT_NO_ATEXIT, nullptr);
    algorithm_ = functions_.fetch(nullptr, "POLY1305", nullptr);
  }
  bool is_complete() const { return algorithm_ != nullptr; }
  std::unique_ptr<Poly1305> new_poly1305() const override {
    EVP_MAC_CTX* const context = functions_.new_context(algorithm_);
    if (context == nullptr) return nullptr;
    return std::make_unique<CryptoPoly1305>(functions_, context);
  }

 private:
  Functions functions_;
  EVP_MAC* algorithm_ = nullptr;  // kept, as the library is
};

std::unique_ptr<Loaded> try_to_load() {
  Functions functions;
  if (!load(functions)) return nullptr;
  auto loaded = std::make_unique<Loaded>(functions);
  if (!loaded->is_complete()) return nullptr;  // some builds leave the algorithm out
  return loaded;
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

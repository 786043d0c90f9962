// SPDX-License-Identifier: BSD-3-Clause
// The main function of a fuzzer where there is no libFuzzer: feeds every file of a corpus folder
// and then mutations of them, the same in every run. It looks for no new paths; it keeps the
// fuzzers alive and the old findings found. Usage: fuzz_NAME CORPUS_FOLDER
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::int64_t kMutations = 20'000;
constexpr std::size_t kMaxBytes = 16 * 1024;  // of a mutated input

void feed(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

// In the order of names, so that a run can be repeated anywhere.
std::vector<std::string> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string bytes = any();
    for (std::size_t i = 1 + below(4); i > 0; --i) change(bytes);
    if (bytes.size() > kMaxBytes) bytes.resize(kMaxBytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  const std::string& any() { return corpus_[below(corpus_.size())]; }
  char byte() { return static_cast<char>(below(256)); }

  void change(std::string& bytes) {
    const std::size_t place = below(bytes.size() + 1);
    const std::size_t length = below(std::min<std::size_t>(bytes.size() - place, 40) + 1);
    switch (below(7)) {
      case 0:
        bytes.insert(place, 1, byte());
        break;
      case 1:
        bytes.erase(place, length);
        break;
      case 2:
        bytes.insert(place, std::string(bytes, place, length));
        break;
      case 3:
        bytes.resize(place);
        break;
      case 4:
        change_digit(bytes, place);
        break;
      case 5: {
        const std::string& other = any();
        bytes.insert(place, other, below(other.size() + 1), 80);
        break;
      }
      default:
        if (place < bytes.size()) bytes[place] = byte();
    }
  }

  // Keeps a text's form and changes its meaning.
  void change_digit(std::string& bytes, std::size_t from) {
    const std::size_t place = bytes.find_first_of("0123456789", from);
    if (place != std::string::npos) bytes[place] = static_cast<char>('0' + below(10));
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{1};
};

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", arguments[0]);
    return 2;
  }
  const auto corpus = read_corpus(arguments[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus in %s\n", arguments[0], arguments[1]);
    return 1;
  }
  feed({});
  for (const std::string& bytes : corpus) feed(bytes);
  Mutator mutator(corpus);
  const std::int64_t mutations = kMutations;
  for (std::int64_t i = 0; i < mutations; ++i) feed(mutator.next());
  std::printf("%zu files and %lld mutations\n", corpus.size(), static_cast<long long>(mutations));
  return 0;
}

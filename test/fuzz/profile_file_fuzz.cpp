// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of the profiles of ranks. An accepted one is merged, and shown in all ways. A refusal
// gives file, line and what was expected.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "profile/merge.hpp"
#include "profile/report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::tools;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = parse_rank_file(text, "fuzz");
  if (!file.ok()) {
    UNISONO_CHECK(file.error().message.starts_with("fuzz:"), "an error without its place");
    UNISONO_CHECK(file.error().message.size() < 2048, "a message as long as the text");
    return 0;
  }
  const auto merged = merge_profiles({*file});
  UNISONO_CHECK(merged.ok(), "one file is not merged");
  UNISONO_CHECK(merged->ranks.empty() != file->is_complete, "an incomplete file is merged");
  UNISONO_CHECK(file->is_complete || !merged->left_out.empty(), "a file is left out silently");
  UNISONO_CHECK(!nlohmann::json::parse(profile_json(*merged)).empty(), "no JSON");
  UNISONO_CHECK(!profile_table(merged->rows, 0).empty(), "no table");
  UNISONO_CHECK(profile_picture(*merged).ends_with("</svg>\n"), "no picture");
  return 0;
}

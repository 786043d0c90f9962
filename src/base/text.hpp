// SPDX-License-Identifier: BSD-3-Clause
// Quantities as people write them: sizes (4K, 1M), times (500ms, 2s), integers; and the nearest of
// some names, for "did you mean". Parsers accept the whole text or nothing. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace unisono::base {

std::optional<std::int64_t> parse_integer(std::string_view text);
// Bytes: a number, then nothing, K, M, G or T (1024 each). The letter may have either case, and B
// or iB may follow it.
std::optional<std::int64_t> parse_size(std::string_view text);
// Nanoseconds: a number, then ns, us, ms, s, min or h; 0 needs no unit.
std::optional<std::int64_t> parse_time_ns(std::string_view text);

// The shortest exact text that the parsers read back: 65536 is "64K".
std::string format_size(std::int64_t bytes);
std::string format_time_ns(std::int64_t time_ns);

// The name closest to `text` by edit distance, where a swap of two neighbours counts as one edit.
// Empty if no name is close enough to be a misspelling.
std::string_view nearest_name(std::string_view text, std::span<const std::string_view> names);

}  // namespace unisono::base

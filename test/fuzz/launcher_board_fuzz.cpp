// SPDX-License-Identifier: BSD-3-Clause
// Fuzzer of what comes from a launcher: lines of PMI's wire, and the notes of other ranks. What is
// accepted means the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "bootstrap/kvs/board.hpp"
#include "bootstrap/kvs/place_note.hpp"
#include "bootstrap/launchers/pmi_line.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace unisono::bootstrap;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  if (const auto line = parse_pmi_line(text); line.ok()) {
    UNISONO_CHECK(text.size() <= PmiLine::kMostBytes && !line->command.empty(), "a line of PMI");
    for (const auto& [name, value] : line->values) {
      const std::string written = pmi_line(line->command, {{name, value}});
      const auto again = parse_pmi_line(std::string_view(written).substr(0, written.size() - 1));
      UNISONO_CHECK(again.ok() && again->value(name) == value, "a value changed in a round trip");
    }
  }
  if (const auto note = read_host_note(text); note.ok()) {
    UNISONO_CHECK(note->addresses.size() <= HostNote::kMostAddresses, "addresses of a note");
    const auto again = read_host_note(write_note(*note));
    UNISONO_CHECK(again.ok() && *again == *note, "a host's note changed in a round trip");
  }
  if (const auto sealed = read_sealed_note(text); sealed.ok()) {
    UNISONO_CHECK(!sealed->empty() && sealed->size() <= kSealedInNote, "keys of a note");
    const auto again = read_sealed_note(write_note(*sealed));
    UNISONO_CHECK(again.ok() && *again == *sealed, "sealed keys changed in a round trip");
  }
  const auto place = read_place_note(text);
  if (!place.ok()) {
    UNISONO_CHECK(place.error().message.size() < 256, "a message as long as the text");
    return 0;
  }
  const std::string written = write_note(*place);
  UNISONO_CHECK(written.size() <= Board::kMostNoteBytes, "a note that is too long");
  const auto again = read_place_note(written);
  UNISONO_CHECK(again.ok() && again->index() == place->index(), "a place changed in a round trip");
  return 0;
}

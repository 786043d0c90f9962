// SPDX-License-Identifier: BSD-3-Clause
// BulkMessages: the messages of a Bulk that are under way, by index, and the bytes that travel
// beside their writes. Their memory is used again. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reliable/reliable.hpp"
#include "transport/transport.hpp"

namespace unisono::reliable {

struct BulkCounts {
  std::uint64_t written = 0;  // puts, or parts of messages
  std::uint64_t read = 0;     // gets
  std::uint64_t refused = 0;  // writes without room or connection, sent as packets
  bool operator==(const BulkCounts&) const = default;
};

struct BulkMessage {
  // A part that goes as packets, before the flag.
  struct Piece {
    std::byte* place;
    std::size_t begin;  // in `bytes`
    std::size_t count;
  };

  int target = -1;
  std::size_t writes_left = 0;
  std::vector<Piece> pieces{};
  std::vector<std::byte> bytes{};
  std::uint64_t* flag = nullptr;  // null: not yet known
  std::uint64_t flag_value = 0;
  bool forward = false;
  bool is_get = false;

  void keep(const transport::Put& piece) {
    pieces.push_back({piece.place, bytes.size(), piece.bytes});
    bytes.insert(bytes.end(), piece.source, piece.source + piece.bytes);
  }
  void put_kept(Reliable& reliable) const {
    for (const Piece& piece : pieces) {
      reliable.put({.target = target,
                    .source = bytes.data() + piece.begin,
                    .place = piece.place,
                    .bytes = piece.count});
    }
  }
};

class BulkMessages {
 public:
  std::size_t size() const { return all_.size(); }
  BulkMessage& operator[](std::size_t index) { return all_[index]; }

  // A message to that rank, without bytes.
  std::size_t take(int target) {
    if (free_.empty()) {
      free_.push_back(all_.size());
      all_.emplace_back();
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    BulkMessage& message = all_[index];
    message.target = target;
    message.writes_left = 0;
    message.pieces.clear();
    message.bytes.clear();  // keeps its memory for the next
    message.flag = nullptr;
    message.is_get = false;
    return index;
  }
  void give_back(std::size_t index) { free_.push_back(index); }

 private:
  std::vector<BulkMessage> all_;
  std::vector<std::size_t> free_;
};

}  // namespace unisono::reliable

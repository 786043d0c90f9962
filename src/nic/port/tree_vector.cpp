// SPDX-License-Identifier: BSD-3-Clause
#include "nic/port/tree_vector.hpp"

#include <algorithm>
#include <cstring>

namespace unisono::nic {

using base::Status;

// Looks at the last packet first: packets end in order unless some are lost.
bool TreeVector::is_done(int piece) const {
  for (std::uint64_t operation = range(piece).end; operation-- > range(piece).first;) {
    if (!port(piece).is_done(operation)) return false;
  }
  return true;
}

bool TreeVector::is_given(int piece) const {
  for (std::uint64_t operation = range(piece).end; operation-- > range(piece).first;) {
    if (!port(piece).is_given(operation)) return false;
  }
  return true;
}

std::optional<std::uint64_t> TreeVector::broken(int piece) const {
  for (std::uint64_t operation = range(piece).first; operation < range(piece).end; ++operation) {
    if (port(piece).is_broken(operation)) return operation;
  }
  return std::nullopt;
}

void TreeVector::begin(const TreeCut& cut) {
  cut_ = cut;
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const std::uint64_t first = port(piece).next();
    ranges_[static_cast<std::size_t>(piece)] = {first, first + cut_.packets(piece)};
  }
}

TreeVector::Part TreeVector::packet(int piece, std::uint64_t number) const {
  const std::size_t start = number * kPacketBytes;
  return {cut_.offset(piece) + start, std::min(kPacketBytes, cut_.bytes(piece) - start)};
}

// Each packet carries the mark of the call, so that programs never combine packets of two calls.
Status TreeVector::post(std::uint32_t combine, const TreeCut& cut, const Contribution& own,
                        Giving giving) {
  begin(cut);
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const auto [first, end] = range(piece);
    for (std::uint64_t i = 0; i < end - first; ++i) {
      const Part part = packet(piece, i);
      const auto given = std::span(ports_.words_).first(words_of(part.bytes));
      if (!given.empty()) given.back() = 0;
      own.copy_to(std::as_writable_bytes(given).first(part.bytes), part.offset);
      UNISONO_TRY(tree(piece).port->post(combine, given, giving));
    }
  }
  return base::success();
}

void TreeVector::follow(const TreeCut& cut) {
  begin(cut);
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    while (port(piece).next() != range(piece).end) tree(piece).port->follow();
  }
}

bool TreeVector::is_done() const {
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    if (!is_done(piece)) return false;
  }
  return true;
}

bool TreeVector::is_broken() const {
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    if (broken(piece)) return true;
  }
  return false;
}

std::int64_t TreeVector::done_ns() const {
  std::int64_t last = 0;
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const auto [first, end] = range(piece);
    for (std::uint64_t operation = first; operation < end; ++operation) {
      last = std::max(last, port(piece).done_ns(operation));
    }
  }
  return last;
}

std::uint32_t TreeVector::given() const {
  std::uint32_t given = ~std::uint32_t{0};
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    if (!is_given(piece)) given &= ~(std::uint32_t{1} << piece);
  }
  return given;
}

std::uint32_t TreeVector::lacking() const {
  std::uint32_t lacking = 0;
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    if (!is_done(piece)) lacking |= std::uint32_t{1} << piece;
  }
  return lacking;
}

int TreeVector::mismatching_rank() const {
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const auto operation = broken(piece);
    const int rank = operation ? port(piece).mismatching_rank(*operation) : -1;
    if (rank >= 0) return rank;
  }
  return -1;
}

void TreeVector::limit(TreePorts::Ends& ends) const {
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    std::uint64_t& end = ends[static_cast<std::size_t>(piece)];
    end = std::min(end, range(piece).first);
  }
}

bool TreeVector::take(void* output) {
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const auto [first, end] = range(piece);
    for (std::uint64_t i = 0; i < end - first; ++i) {
      const Part part = packet(piece, i);
      const auto result = port(piece).result(first + i);
      if (result.size_bytes() < part.bytes) return false;
      if (output == nullptr || part.bytes == 0) continue;
      std::memcpy(static_cast<std::byte*>(output) + part.offset, result.data(), part.bytes);
    }
  }
  for (int piece = 0; piece < cut_.pieces; ++piece) {
    const auto [first, end] = range(piece);
    for (std::uint64_t operation = first; operation < end; ++operation) tree(piece).take(operation);
  }
  return true;
}

// Waits for the last packet that is not done: the others are done earlier, or are lost. If an
// earlier one is broken, the rank sees that when it looks for lost packets.
bool TreeVector::arm() {
  awaited_ = 0;
  while (awaited_ + 1 < cut_.pieces && is_done(awaited_)) ++awaited_;
  if (is_done(awaited_)) awaited_ = 0;
  const auto [first, end] = range(awaited_);
  awaited_operation_ = end - 1;
  while (awaited_operation_ > first && port(awaited_).is_done(awaited_operation_)) {
    --awaited_operation_;
  }
  return port(awaited_).arm(*tree(awaited_).wakes, awaited_operation_);
}

void TreeVector::disarm() { port(awaited_).disarm(*tree(awaited_).wakes, awaited_operation_); }

void TreeVector::sleep(std::int64_t limit_ns) {
  if (arm()) tree(awaited_).wakes->sleep(limit_ns);
  disarm();
}

}  // namespace unisono::nic

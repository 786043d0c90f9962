// SPDX-License-Identifier: BSD-3-Clause
#include "nic/port/tree_ports.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "nic/port/segments.hpp"

namespace unisono::nic {

using base::Status;

Status TreePorts::add(const Node& node, std::unique_ptr<Membership> member,
                      std::optional<std::uint32_t> waiter) {
  Tree tree;
  if (waiter) {
    UNISONO_ASSIGN(tree.wakes, WakeRing::open(std::move(member->wakes.at(*waiter)), *waiter));
  }
  UNISONO_ASSIGN(tree.port, Port::open(member->row, member->mapping.memory()));
  tree.member = std::move(member);
  trees_.push_back(std::move(tree));
  nodes_.push_back(node);
  return base::success();
}

// Looks at the last packet first: packets end in order unless some are lost.
bool TreePorts::Tree::is_done() const {
  for (std::uint64_t operation = end; operation-- > first;) {
    if (!port->is_done(operation)) return false;
  }
  return true;
}

bool TreePorts::Tree::is_given() const {
  for (std::uint64_t operation = end; operation-- > first;) {
    if (!port->is_given(operation)) return false;
  }
  return true;
}

std::optional<std::uint64_t> TreePorts::Tree::broken() const {
  for (std::uint64_t operation = first; operation < end; ++operation) {
    if (port->is_broken(operation)) return operation;
  }
  return std::nullopt;
}

void TreePorts::begin(const Cut& cut) {
  cut_ = cut;
  for (int number = 0; number < cut_.pieces; ++number) {
    Tree& tree = trees_[static_cast<std::size_t>(number)];
    tree.first = tree.port->next();
    tree.end = tree.first + Segments::pieces(words_of(piece(number).bytes), UNISONO_NIC_WORDS_MAX);
  }
}

TreePorts::Piece TreePorts::piece(int number) const {
  const auto i = static_cast<std::size_t>(number);
  return {cut_.bounds[i], cut_.bounds[i + 1] - cut_.bounds[i]};
}

TreePorts::Piece TreePorts::packet(const Piece& piece, std::uint64_t number) {
  const std::size_t start = number * kPacketBytes;
  return {piece.offset + start, std::min(kPacketBytes, piece.bytes - start)};
}

// Each packet carries the mark of the call, so that programs never combine packets of two calls.
Status TreePorts::post(std::uint32_t combine, const Cut& cut, const Contribution& own) {
  begin(cut);
  for (int number = 0; number < cut_.pieces; ++number) {
    const Tree& tree = trees_[static_cast<std::size_t>(number)];
    const Piece whole = piece(number);
    for (std::uint64_t i = 0; i < tree.end - tree.first; ++i) {
      const Piece part = packet(whole, i);
      const auto given = std::span(words_).first(words_of(part.bytes));
      if (!given.empty()) given.back() = 0;
      own.copy_to(std::as_writable_bytes(given).first(part.bytes), part.offset);
      UNISONO_TRY(tree.port->post(combine, given));
    }
  }
  return base::success();
}

void TreePorts::follow(const Cut& cut) {
  begin(cut);
  for (Tree& tree : used()) {
    while (tree.port->next() != tree.end) tree.port->follow();
  }
}

bool TreePorts::is_done() const { return std::ranges::all_of(used(), &Tree::is_done); }

bool TreePorts::is_broken() const {
  return std::ranges::any_of(used(), [](const Tree& tree) { return tree.broken().has_value(); });
}

std::int64_t TreePorts::done_ns() const {
  std::int64_t last = 0;
  for (const Tree& tree : used()) {
    for (std::uint64_t operation = tree.first; operation < tree.end; ++operation) {
      last = std::max(last, tree.port->done_ns(operation));
    }
  }
  return last;
}

std::uint32_t TreePorts::given() const {
  std::uint32_t given = ~std::uint32_t{0};
  for (int t = 0; t < cut_.pieces; ++t) {
    if (!trees_[static_cast<std::size_t>(t)].is_given()) given &= ~(std::uint32_t{1} << t);
  }
  return given;
}

std::uint32_t TreePorts::lacking() const {
  std::uint32_t lacking = 0;
  for (int t = 0; t < cut_.pieces; ++t) {
    if (!trees_[static_cast<std::size_t>(t)].is_done()) lacking |= std::uint32_t{1} << t;
  }
  return lacking;
}

int TreePorts::mismatching_rank() const {
  for (const Tree& tree : used()) {
    const auto broken = tree.broken();
    const int rank = broken ? tree.port->mismatching_rank(*broken) : -1;
    if (rank >= 0) return rank;
  }
  return -1;
}

bool TreePorts::take(void* output) const {
  for (int number = 0; number < cut_.pieces; ++number) {
    const Tree& tree = trees_[static_cast<std::size_t>(number)];
    const Piece whole = piece(number);
    for (std::uint64_t i = 0; i < tree.end - tree.first; ++i) {
      const Piece part = packet(whole, i);
      const auto result = tree.port->result(tree.first + i);
      if (result.size_bytes() < part.bytes) return false;
      if (output == nullptr || part.bytes == 0) continue;
      std::memcpy(static_cast<std::byte*>(output) + part.offset, result.data(), part.bytes);
    }
  }
  return true;
}

base::Result<int> TreePorts::repair(std::int64_t now_ns, std::int64_t delay_ns) {
  int asked = 0;
  for (Tree& tree : used()) {
    UNISONO_ASSIGN(const int of_tree, tree.port->repair(now_ns, delay_ns));
    asked += of_tree;
  }
  return asked;
}

// Waits for the last packet that is not done: the others are done earlier, or are lost. If an
// earlier one is broken, the rank sees that when it looks for lost packets.
bool TreePorts::arm() {
  awaited_ = &trees_[0];
  for (Tree& tree : used()) {
    if (tree.is_done()) continue;
    awaited_ = &tree;
    break;
  }
  awaited_operation_ = awaited_->end - 1;
  while (awaited_operation_ > awaited_->first && awaited_->port->is_done(awaited_operation_)) {
    --awaited_operation_;
  }
  return awaited_->port->arm(*awaited_->wakes, awaited_operation_);
}

void TreePorts::disarm() { awaited_->port->disarm(*awaited_->wakes, awaited_operation_); }

void TreePorts::sleep(std::int64_t limit_ns) {
  if (arm()) awaited_->wakes->sleep(limit_ns);
  disarm();
}

}  // namespace unisono::nic

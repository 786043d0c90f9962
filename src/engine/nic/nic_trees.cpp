// SPDX-License-Identifier: BSD-3-Clause
#include "engine/nic/nic_trees.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithm/pattern/blocks.hpp"

namespace unisono::engine {

using base::Status;

Status NicTrees::add(const nic::Node& node, std::unique_ptr<nic::Membership> member,
                     std::optional<std::uint32_t> waiter) {
  Tree tree;
  if (waiter) {
    UNISONO_ASSIGN(tree.wakes, nic::WakeRing::open(std::move(member->wakes.at(*waiter)), *waiter));
  }
  UNISONO_ASSIGN(tree.port, nic::Port::open(member->row, member->mapping.memory()));
  tree.member = std::move(member);
  trees_.push_back(std::move(tree));
  nodes_.push_back(node);
  return base::success();
}

void NicTrees::begin(const Cut& cut) {
  cut_ = cut;
  for (Tree& tree : used()) tree.operation = tree.port->next();
}

// As the schedule cuts it.
NicTrees::Piece NicTrees::piece(int number) const {
  const auto elements = static_cast<std::int64_t>(cut_.bytes / cut_.element_bytes);
  const algorithm::pattern::Blocks blocks(elements, cut_.pieces);
  return {static_cast<std::size_t>(blocks.offset(number)) * cut_.element_bytes,
          static_cast<std::size_t>(blocks.count(number)) * cut_.element_bytes};
}

Status NicTrees::post(std::uint32_t combine, const Cut& cut, const void* vector) {
  begin(cut);
  for (int number = 0; number < cut_.pieces; ++number) {
    const Piece part = piece(number);
    const std::size_t words = (part.bytes + sizeof words_[0] - 1) / sizeof words_[0];
    const auto given = std::span(words_).first(words);
    std::ranges::fill(given, 0);
    if (vector != nullptr && part.bytes != 0) {
      std::memcpy(given.data(), static_cast<const std::byte*>(vector) + part.offset, part.bytes);
    }
    UNISONO_TRY(trees_[static_cast<std::size_t>(number)].port->post(combine, given));
  }
  return base::success();
}

void NicTrees::follow(const Cut& cut) {
  begin(cut);
  for (Tree& tree : used()) tree.port->follow();
}

bool NicTrees::is_done() const { return std::ranges::all_of(used(), &Tree::is_done); }

bool NicTrees::is_broken() const {
  return std::ranges::any_of(used(),
                             [](const Tree& tree) { return tree.port->is_broken(tree.operation); });
}

std::int64_t NicTrees::done_ns() const {
  std::int64_t last = 0;
  for (const Tree& tree : used()) last = std::max(last, tree.port->done_ns(tree.operation));
  return last;
}

std::uint32_t NicTrees::given() const {
  std::uint32_t given = ~std::uint32_t{0};
  for (int t = 0; t < cut_.pieces; ++t) {
    const Tree& tree = trees_[static_cast<std::size_t>(t)];
    if (!tree.port->is_given(tree.operation)) given &= ~(std::uint32_t{1} << t);
  }
  return given;
}

std::uint32_t NicTrees::lacking() const {
  std::uint32_t lacking = 0;
  for (int t = 0; t < cut_.pieces; ++t) {
    if (!trees_[static_cast<std::size_t>(t)].is_done()) lacking |= std::uint32_t{1} << t;
  }
  return lacking;
}

int NicTrees::odd_rank() const {
  for (const Tree& tree : used()) {
    const bool is_broken = tree.port->is_broken(tree.operation);
    const int odd = is_broken ? tree.port->odd_rank(tree.operation) : -1;
    if (odd >= 0) return odd;
  }
  return -1;
}

bool NicTrees::take(void* output) const {
  for (int number = 0; number < cut_.pieces; ++number) {
    const Tree& tree = trees_[static_cast<std::size_t>(number)];
    const Piece part = piece(number);
    const auto result = tree.port->result(tree.operation);
    if (result.size_bytes() < part.bytes) return false;
    if (output == nullptr || part.bytes == 0) continue;
    std::memcpy(static_cast<std::byte*>(output) + part.offset, result.data(), part.bytes);
  }
  return true;
}

base::Result<int> NicTrees::repair(std::int64_t now_ns, std::int64_t delay_ns) {
  int asked = 0;
  for (Tree& tree : used()) {
    UNISONO_ASSIGN(const int of_tree, tree.port->repair(now_ns, delay_ns));
    asked += of_tree;
  }
  return asked;
}

bool NicTrees::arm() {
  awaited_ = &trees_[0];
  for (Tree& tree : used()) {
    if (tree.is_done()) continue;
    awaited_ = &tree;
    break;
  }
  return awaited_->port->arm(*awaited_->wakes, awaited_->operation);
}

void NicTrees::disarm() { awaited_->port->disarm(*awaited_->wakes, awaited_->operation); }

void NicTrees::sleep(std::int64_t limit_ns) {
  if (arm()) awaited_->wakes->sleep(limit_ns);
  disarm();
}

}  // namespace unisono::engine

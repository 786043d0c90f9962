// SPDX-License-Identifier: BSD-3-Clause
// The order of a rank's operations in the NIC path, some of whose calls have returned.
#include "comm/nic/nic_order.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace unisono::comm::nic_order_test {
namespace {

class NicOrderOfThree : public testing::Test {
 protected:
  void SetUp() override {
    for (engine::Operation* each : {&first_, &second_, &third_}) {
      each->plan = plan_.get();
      each->index = 10 + order_.all().size();
      order_.add(*each);
    }
  }

  std::shared_ptr<plan::Plan> plan_ = std::make_shared<plan::Plan>();
  NicOrder order_{7};
  engine::Operation first_, second_, third_;
};

TEST_F(NicOrderOfThree, NumbersFollowOneAnother) {
  EXPECT_EQ(first_.nic.number, 7U);
  EXPECT_EQ(third_.nic.number, 9U);
  EXPECT_EQ(order_.remove(second_), 7U) << "the first is not done";
  EXPECT_EQ(order_.remove(first_), 9U);
  EXPECT_EQ(order_.remove(third_), 10U);
  EXPECT_TRUE(order_.is_empty());
}

TEST_F(NicOrderOfThree, ACancelledOperationGivesItsNumberBack) {
  EXPECT_TRUE(order_.cancel(second_));
  EXPECT_FALSE(order_.cancel(second_));
  EXPECT_TRUE(order_.cancel(third_));
  EXPECT_EQ(order_.remove(first_), 8U);
}

TEST_F(NicOrderOfThree, ADetachedOperationIsKeptWithItsPlan) {
  EXPECT_EQ(order_.first_detached(), nullptr);
  EXPECT_EQ(order_.detached(), 0U);
  order_.detach(first_);
  first_ = {};
  const std::weak_ptr<plan::Plan> plan = plan_;
  second_.plan = third_.plan = nullptr;
  plan_.reset();
  engine::Operation* const kept = order_.first_detached();
  ASSERT_NE(kept, nullptr);
  EXPECT_NE(kept, &first_);
  EXPECT_EQ(kept->index, 10U);
  EXPECT_EQ(kept->nic.number, 7U);
  EXPECT_EQ(kept->plan, plan.lock().get());
  EXPECT_FALSE(plan.expired());
  EXPECT_EQ(order_.first(), kept);
  EXPECT_EQ(order_.first_awaited(), &second_);
  EXPECT_EQ(order_.detached(), 1U);
  EXPECT_EQ(order_.remove(*kept), 8U);
  EXPECT_EQ(order_.first_detached(), nullptr);
}

TEST_F(NicOrderOfThree, OnlyThoseAtTheFrontCountAsDetached) {
  order_.detach(second_);
  EXPECT_EQ(order_.detached(), 0U);
  EXPECT_EQ(order_.first_detached(), nullptr);
  EXPECT_EQ(order_.first_awaited(), &first_);
  order_.drop_detached();
  EXPECT_EQ(order_.all().size(), 3U);
  order_.detach(first_);
  EXPECT_EQ(order_.detached(), 2U);
  order_.drop_detached();
  EXPECT_EQ(order_.first(), &third_);
}

}  // namespace
}  // namespace unisono::comm::nic_order_test

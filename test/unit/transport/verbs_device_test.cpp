// SPDX-License-Identifier: BSD-3-Clause
// Devices that cannot be used: what the error says, and that nothing stays open (fake_verbs.hpp).
// And the datagrams by which ranks ask for connections.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "fake_verbs.hpp"
#include "transport/verbs/handshake.hpp"
#include "transport/verbs/ring.hpp"

namespace unisono::transport::verbs_device_test {
namespace {

// The error's text; its code has to be that one.
std::string refusal(FakeVerbs& fake, base::Code code, const std::string& device = "") {
  const auto opened = fake.open(device);
  if (opened.ok()) return "it was opened";
  EXPECT_EQ(opened.error().code, code) << opened.error().message;
  EXPECT_EQ(fake.objects, 0);
  return opened.error().message;
}

TEST(VerbsDevice, OpensAndClosesAGoodOne) {
  FakeVerbs fake;
  {
    const auto opened = fake.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ((*opened)->name(), "verbs/fake0");
    EXPECT_TRUE((*opened)->raises_flags());
    EXPECT_GT(fake.objects, 0);
  }
  EXPECT_EQ(fake.objects, 0);
  EXPECT_TRUE(fake.open("fake0").ok());
  EXPECT_TRUE(fake.open("fake0:1").ok());
}

TEST(VerbsDevice, NoDeviceIsSaid) {
  FakeVerbs fake;
  fake.devices = 0;
  EXPECT_NE(refusal(fake, base::Code::unsupported).find("no RDMA device"), std::string::npos);
}

TEST(VerbsDevice, ADeviceThatIsNotThereIsNamed) {
  FakeVerbs fake;
  for (const char* device : {"other0", "fake0:2"}) {
    const std::string text = refusal(fake, base::Code::unsupported, device);
    EXPECT_NE(text.find(std::string("no device ") + device), std::string::npos) << text;
  }
}

TEST(VerbsDevice, APortThatIsDownIsNamed) {
  FakeVerbs fake;
  fake.port.state = IBV_PORT_DOWN;
  const std::string text = refusal(fake, base::Code::unsupported);
  EXPECT_NE(text.find("fake0 port 1 is down"), std::string::npos) << text;
  EXPECT_NE(text.find("UNISONO_VERBS_DEVICE"), std::string::npos) << text;
}

TEST(VerbsDevice, APortWithoutAnAddressIsNamed) {
  FakeVerbs fake;
  fake.gid.gid_type = IBV_GID_TYPE_ROCE_V1;
  const std::string text = refusal(fake, base::Code::unsupported);
  EXPECT_NE(text.find("fake0 port 1 has no address (RoCE v2)"), std::string::npos) << text;
}

TEST(VerbsDevice, ADeviceThatMayNotBeOpenedIsNamed) {
  FakeVerbs fake;
  fake.opens = false;
  const std::string text = refusal(fake, base::Code::unsupported);
  EXPECT_NE(text.find("fake0 cannot be opened: Permission denied"), std::string::npos) << text;
}

TEST(VerbsDevice, LimitsThatAreTooSmallAreNamed) {
  struct Case {
    int ibv_device_attr::*limit;
    const char* text;
  };
  for (const Case& each : {Case{&ibv_device_attr::max_qp_wr, "max_qp_wr is 1, at least 128"},
                           Case{&ibv_device_attr::max_srq_wr, "max_srq_wr is 1, at least 64"},
                           Case{&ibv_device_attr::max_qp, "max_qp is 1, at least 3"},
                           Case{&ibv_device_attr::max_cqe, "max_cqe is 1, at least"}}) {
    FakeVerbs fake;
    fake.limits.*each.limit = 1;
    const std::string text = refusal(fake, base::Code::unsupported);
    EXPECT_NE(text.find(each.text), std::string::npos) << text;
  }
}

TEST(VerbsDevice, MemoryThatMayNotBeLockedIsSaid) {
  FakeVerbs fake;
  fake.registers = false;
  const std::string text = refusal(fake, base::Code::resources);
  EXPECT_NE(text.find("ulimit -l"), std::string::npos) << text;
}

TEST(VerbsDevice, ACardOfAnotherFormIsRefused) {
  FakeVerbs fake;
  const auto opened = fake.open();
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE((*opened)->meet(2, (*opened)->card()).ok());
  RegionCard card = (*opened)->card();
  card.address_bytes = 19;
  const auto met = (*opened)->meet(1, card);
  ASSERT_FALSE(met.ok());
  EXPECT_NE(met.error().message.find("rank 1"), std::string::npos) << met.error().message;
  EXPECT_FALSE((*opened)->accepts_message(1));
}

// A rank that has connections with ranks 1 and 2.
class VerbsFailure : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = fake.open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    verbs = std::move(*opened);
    for (const int rank : {1, 2}) {
      ASSERT_TRUE(verbs->meet(rank, verbs->card()).ok());
      EXPECT_FALSE(verbs->accepts_message(rank));  // it asks for the connection
    }
  }
  void end_request(std::uint64_t request, ibv_wc_status status) {
    ibv_wc done{};
    done.wr_id = request;
    done.status = status;
    fake.ended.push_back(done);
  }
  void expect_own_loss(const std::string& why) {
    EXPECT_EQ(verbs->device_loss(),
              "verbs: rank 0 at fake0 port 1: " + why +
                  "; check the device on that host (`rdma link`, `dmesg`), or set "
                  "UNISONO_BULK=tcp");
    for (const int rank : {1, 2}) EXPECT_NE(verbs->error_of(rank), "") << rank;
    EXPECT_EQ(verbs->failures(), 2U);
  }

  FakeVerbs fake;
  std::unique_ptr<RemoteMemory> verbs;
};

TEST_F(VerbsFailure, NamesThePeerThatDoesNotAcknowledge) {
  end_request(verbs_request(1, 1), IBV_WC_RETRY_EXC_ERR);
  end_request(kVerbsIncomingSide | verbs_request(2, 1), IBV_WC_RETRY_EXC_ERR);
  verbs->poll({});
  EXPECT_EQ(verbs->device_loss(), "");
  EXPECT_EQ(verbs->failures(), 2U);
  const std::string hint =
      " failed: too many retries; check the link (`rdma link`) on both hosts, or set "
      "UNISONO_BULK=tcp";
  EXPECT_EQ(verbs->error_of(1), "verbs: rank 0 at fake0 port 1: a write to rank 1" + hint);
  EXPECT_EQ(verbs->error_of(2),
            "verbs: rank 0 at fake0 port 1: an acknowledgement to rank 2" + hint);
}

TEST_F(VerbsFailure, NamesTheOwnDeviceForAFaultOfItsQueues) {
  end_request(verbs_request(1, 1), IBV_WC_LOC_QP_OP_ERR);
  end_request(verbs_request(1, 2), IBV_WC_WR_FLUSH_ERR);
  verbs->poll({});
  expect_own_loss("a write to rank 1 failed here: another status");
}

TEST_F(VerbsFailure, NamesTheOwnDeviceWhenItsPortIsDown) {
  fake.port.state = IBV_PORT_DOWN;
  end_request(verbs_request(1, 1), IBV_WC_RETRY_EXC_ERR);
  verbs->poll({});
  expect_own_loss("the port is no longer active, or the device was removed");
}

TEST_F(VerbsFailure, NamesTheOwnDeviceForRequestsThatItsEndFlushes) {
  fake.reports = {IBV_EVENT_PORT_ERR, IBV_EVENT_DEVICE_FATAL};
  end_request(verbs_request(1, 1), IBV_WC_WR_FLUSH_ERR);
  end_request(kVerbsIncomingSide | verbs_request(2, 1), IBV_WC_WR_FLUSH_ERR);
  verbs->poll({});
  expect_own_loss("the device has failed or was removed");
}

// Registered memory is not inherited, but all of the heap is.
TEST(VerbsDevice, AChildHasTheWholeHeapAfterADeviceWasClosed) {
  FakeVerbs fake;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(fake.open().ok());
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 200; ++i) blocks.emplace_back(9000, 'a');
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (auto& block : blocks) std::ranges::fill(block, 'b');
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it was ended by signal " << WTERMSIG(status);
}

constexpr wire::Key kKey{.low = 3, .high = 4};

TEST(VerbsHandshake, IsReadBackAndHasToBeOfTheJob) {
  const VerbsHandshake sent{.kind = VerbsHandshake::Kind::answer,
                            .from = 1,
                            .to = 2,
                            .queue_pair = 3,
                            .first_packet = 4,
                            .mtu = 5,
                            .address = 6,
                            .key = 7};
  const auto bytes = encode_verbs_handshake(sent, kKey);
  EXPECT_EQ(decode_verbs_handshake(bytes, kKey), sent);
  EXPECT_FALSE(decode_verbs_handshake(bytes, {.low = 3, .high = 5}));
  EXPECT_FALSE(decode_verbs_handshake(std::span(bytes).first(63), kKey));
  EXPECT_FALSE(decode_verbs_handshake({}, kKey));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto changed = bytes;
    changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(decode_verbs_handshake(changed, kKey)) << bit;
  }
}

TEST(VerbsHandshake, AnAddressIsReadBackFromItsCard) {
  VerbsAddress address{.gid = {}, .lid = 7, .control = 8};
  address.gid[3] = std::byte{9};
  EXPECT_EQ(verbs_address_of(card_of_verbs(address)), address);
  EXPECT_FALSE(verbs_address_of(RegionCard{}));
}

// Slots, pieces and words of a ring have places of their own, and a short frame fits one packet.
// 4.096 us * 2^17 * 7 is 3.8 s.
TEST(VerbsRing, RepeatsLastAsLongAsAPeerMayBeSilent) {
  EXPECT_EQ(verbs_pause(0), kVerbsLeastPause);
  EXPECT_EQ(verbs_pause(base::kSecond), 15);
  EXPECT_EQ(verbs_pause(5 * base::kSecond), 17);
  EXPECT_EQ(verbs_pause(10 * base::kSecond), kVerbsMostPause);
  EXPECT_EQ(verbs_pause(std::numeric_limits<std::int64_t>::max()), kVerbsMostPause);
}

TEST(VerbsRing, PlacesDoNotOverlap) {
  EXPECT_EQ(verbs_slot_at(kVerbsSlots), verbs_slot_at(0));
  EXPECT_EQ(verbs_piece_at(0), verbs_slot_at(kVerbsSlots - 1) + kVerbsSlotBytes);
  EXPECT_EQ(verbs_piece_at(kVerbsPieces), verbs_piece_at(0));
  EXPECT_EQ(kVerbsIdleWordAt, verbs_piece_at(kVerbsPieces - 1) + kVerbsPieceBytes);
  EXPECT_LT(kVerbsConsumedAt, kVerbsRingBytes);
  for (std::uint32_t mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    EXPECT_LE(verbs_padded(verbs_most_short(mtu)) + sizeof(VerbsTrailer), std::size_t{128} << mtu);
    EXPECT_LE(verbs_padded(verbs_most_short(mtu)), kVerbsTrailerAt);
  }
}

}  // namespace
}  // namespace unisono::transport::verbs_device_test

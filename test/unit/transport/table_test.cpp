// SPDX-License-Identifier: BSD-3-Clause
// Each row of the table of transports passes the conformance tests of its kind, made as jobs make
// it. A new row gets them by one line here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>

#include "datagrams_conformance.hpp"
#include "loopback.hpp"
#include "transport/table.hpp"
#include "transport_conformance.hpp"

namespace unisono::transport::table_test {
namespace {

TEST(TransportTable, NamesAreDifferentAndTheFirstRowsAreForJobs) {
  std::set<std::string_view> names;
  for (const LocalRow& row : local_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.capabilities().name, row.name);
    if (row.make == nullptr) continue;
    EXPECT_EQ(row.make()->capabilities().name, row.name);
  }
  EXPECT_NE(local_rows().front().make, nullptr);
  for (const DatagramsRow& row : datagrams_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.reference, "") << row.name;
  }
  for (const RemoteMemoryRow& row : remote_memory_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(row.reference, "") << row.name;
    EXPECT_NE(row.availability(), "") << row.name;
  }
}

// The lines INSTANTIATE_TYPED_TEST_SUITE_P below: one for each row that jobs can use.
TEST(TransportTable, EachRowHasItsConformanceTests) {
  EXPECT_EQ(
      std::ranges::count_if(local_rows(), [](const LocalRow& row) { return row.make != nullptr; }),
      1);
  EXPECT_EQ(datagrams_rows().size(), 1U);
}

// The settings lie below the transports, so their table cannot ask this one.
TEST(TransportTable, UnisonoBulkTakesItsNames) {
  std::string choices(datagrams_rows().front().name);
  for (const RemoteMemoryRow& row : remote_memory_rows()) choices += fmt::format("|{}", row.name);
  EXPECT_EQ(base::setting_row(base::Setting::bulk).choices, choices + "|auto");
}

TEST(TransportTable, RemoteMemoryIsChosenByItsSetting) {
  const auto chosen = [](const std::string& value) {
    return choose_remote_memory(*base::Settings::from({{"UNISONO_BULK", value}}));
  };
  EXPECT_EQ(choose_remote_memory(base::Settings()).row, &remote_memory_rows().front());
  EXPECT_EQ(chosen("udp").row, nullptr);
  EXPECT_EQ(chosen("auto").row, &remote_memory_rows().front());
  EXPECT_FALSE(chosen("auto").insists);
  for (const RemoteMemoryRow& row : remote_memory_rows()) {
    EXPECT_EQ(chosen(std::string(row.name)).row, &row);
    EXPECT_TRUE(chosen(std::string(row.name)).insists);
  }
}

// ---- local -------------------------------------------------------------------------------------

template <std::size_t kRow>
struct LocalWorld {
  static base::Result<std::unique_ptr<LocalWorld>> make(int ranks) {
    auto world = std::make_unique<LocalWorld>();
    for (int rank = 0; rank < ranks; ++rank) world->all.push_back(local_rows()[kRow].make());
    return world;
  }
  Transport& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  std::byte* region(int) { return reinterpret_cast<std::byte*>(memory.data()); }
  void step() {
    for (auto& each : all) each->progress();
  }

  std::vector<std::uint64_t> memory = std::vector<std::uint64_t>(kConformanceRegion / 8);
  std::vector<std::unique_ptr<Transport>> all;
};

INSTANTIATE_TYPED_TEST_SUITE_P(LocalOfJobs, TransportConformance, LocalWorld<0>);

// ---- datagrams ---------------------------------------------------------------------------------

base::Result<std::vector<std::unique_ptr<JobDatagrams>>> open_all(const DatagramsRow& row,
                                                                  int ranks) {
  UNISONO_ASSIGN(const LocalAddress local, loopback(Family::v4));
  std::vector<std::unique_ptr<JobDatagrams>> all;
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < ranks; ++rank) {
    UNISONO_ASSIGN(auto opened, row.open(base::Settings(), rank, local.address));
    endpoints.push_back(opened->endpoint());
    all.push_back(std::move(opened));
  }
  for (auto& each : all) UNISONO_TRY(each->meet(endpoints, each->limits().max_payload));
  return all;
}

template <std::size_t kRow>
struct DatagramsWorld {
  static base::Result<std::unique_ptr<DatagramsWorld>> make(int ranks) {
    auto world = std::make_unique<DatagramsWorld>();
    UNISONO_ASSIGN(world->all, open_all(datagrams_rows()[kRow], ranks));
    return world;
  }
  Datagrams& at(int rank) { return *all[static_cast<std::size_t>(rank)]; }
  void wait(int rank) {
    pollfd one{.fd = at(rank).descriptor(), .events = POLLIN, .revents = 0};
    poll(&one, 1, -1);
  }
  std::vector<std::unique_ptr<JobDatagrams>> all;
};

INSTANTIATE_TYPED_TEST_SUITE_P(DatagramsOfJobs, DatagramsConformance, DatagramsWorld<0>);

TEST(TransportTable, DatagramsSayWhoTheyAreBeforeTheyMeet) {
  const auto local = loopback(Family::v4);
  if (!local.ok()) GTEST_SKIP() << local.error().message;
  for (const DatagramsRow& row : datagrams_rows()) {
    auto opened = row.open(base::Settings(), 3, local->address);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ((*opened)->limits().name, row.name);
    EXPECT_EQ((*opened)->rank(), 3);
    EXPECT_EQ((*opened)->endpoint().address, local->address);
    EXPECT_FALSE((*opened)->limits().multicast);
    const auto text = row.describe(base::Settings(), local->address);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_NE(text->find(ip_text(local->address)), std::string::npos) << *text;
  }
}

TEST(TransportTable, MulticastIsLeftAloneWhereItIsOff) {
  const auto local = loopback(Family::v4);
  if (!local.ok()) GTEST_SKIP() << local.error().message;
  for (const DatagramsRow& row : datagrams_rows()) {
    const auto settings = base::Settings::from({{"UNISONO_MULTICAST", "off"}});
    auto opened = row.open(*settings, 0, local->address);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const Endpoint own = (*opened)->endpoint();
    ASSERT_TRUE((*opened)->meet(std::span(&own, 1), (*opened)->limits().max_payload).ok());
    EXPECT_TRUE((*opened)->join_multicast(12345).ok());
    EXPECT_FALSE((*opened)->limits().multicast);
    EXPECT_EQ((*opened)->multicast_note(), "");
  }
}

// ---- decorators --------------------------------------------------------------------------------

TEST(TransportTable, DecoratorsAreThereWhereTheirSettingSaysSo) {
  auto world = DatagramsWorld<0>::make(2);
  if (!world.ok()) GTEST_SKIP() << world.error().message;
  Datagrams* const plain = (*world)->all[0].get();
  auto same = decorate(std::move((*world)->all[0]), base::Settings());
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->get(), plain);
  // All that is sent is lost.
  const auto losing = base::Settings::from({{"UNISONO_FAULT", "loss=1"}});
  auto decorated = decorate(std::move(*same), *losing);
  ASSERT_TRUE(decorated.ok()) << decorated.error().message;
  EXPECT_NE(decorated->get(), plain);
  const std::byte byte{7};
  const Outgoing one{.target = 1, .head = std::span(&byte, 1)};
  EXPECT_EQ((*decorated)->send(std::span(&one, 1)), 1U);
  EXPECT_EQ((*decorated)->counts().sent, 0U);
  const auto wrong = base::Settings::from({{"UNISONO_FAULT", "pigeons=3"}});
  const auto refused = decorate(std::move(*decorated), *wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::Code::argument);
  EXPECT_NE(refused.error().message.find("UNISONO_FAULT=pigeons=3"), std::string::npos);
}

// ---- remote memory -----------------------------------------------------------------------------

// Until a rank may write to rank 1, and until that has its flag.
void write_with_flag(std::vector<std::unique_ptr<RemoteMemory>>& all, Transfer transfer,
                     std::byte* target) {
  while (!all[0]->accepts_message(1)) {
    for (auto& each : all) each->poll({});
  }
  transfer.flag = 8;
  transfer.flag_value = 5;
  ASSERT_TRUE(all[0]->write(transfer));
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(target + transfer.flag));
  while (word.load(std::memory_order_acquire) != 5) {
    for (auto& each : all) each->poll({});
  }
  EXPECT_EQ(all[1]->flags_raised(), 1U);
}

void write_until_complete(std::vector<std::unique_ptr<RemoteMemory>>& all,
                          const Transfer& transfer) {
  ASSERT_TRUE(all[0]->write(transfer));
  Completion done;
  while (all[0]->poll(std::span(&done, 1)) == 0) all[1]->poll({});
  EXPECT_TRUE(done.arrived) << all[0]->error_of(1);
}

// Two ranks: a write from one is in the other's region when it is complete, or when its flag is.
class RemoteMemoryRows : public testing::TestWithParam<std::size_t> {};

TEST_P(RemoteMemoryRows, WritesToAnothersRegion) {
  const auto local = loopback(Family::v4);
  if (!local.ok()) GTEST_SKIP() << local.error().message;
  constexpr std::size_t kBytes = 1 << 20;
  const RemoteMemoryRow& row = remote_memory_rows()[GetParam()];
  alignas(4096) static std::byte regions[2][kBytes];
  std::memset(regions, 0, sizeof regions);
  std::vector<std::unique_ptr<RemoteMemory>> all;
  for (auto& region : regions) {
    auto opened = row.open(base::Settings(), {.address = local->address,
                                              .rank = static_cast<int>(all.size()),
                                              .ranks = 2,
                                              .region = region,
                                              .region_bytes = kBytes});
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    all.push_back(std::move(*opened));
  }
  EXPECT_EQ(all[0]->name().substr(0, row.name.size()), row.name);
  ASSERT_TRUE(all[0]->meet(1, all[1]->card()).ok());
  ASSERT_TRUE(all[1]->meet(0, all[0]->card()).ok());
  const std::vector<std::byte> sent(kBytes / 2, std::byte{9});
  const Transfer transfer{.rank = 1, .offset = 64, .from = sent.data(), .bytes = sent.size()};
  if (all[0]->raises_flags()) {
    write_with_flag(all, transfer, regions[1]);
  } else {
    write_until_complete(all, transfer);
  }
  EXPECT_EQ(std::memcmp(regions[1] + 64, sent.data(), sent.size()), 0);
  EXPECT_GT(all[0]->moved(1), 0U);
}

INSTANTIATE_TEST_SUITE_P(OfJobs, RemoteMemoryRows,
                         testing::Range<std::size_t>(0, remote_memory_rows().size()),
                         [](const auto& one) {
                           return std::string(remote_memory_rows()[one.param].name);
                         });

}  // namespace
}  // namespace unisono::transport::table_test

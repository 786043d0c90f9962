// SPDX-License-Identifier: BSD-3-Clause
// The file of this user and machine: damaged, foreign and half-written ones are refused.
#include "model/own_machine.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/temporary_folder.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model {
namespace {

const Fingerprint kOwn{"Some CPU, 2 cores", "0.1.0", "UNISONO_ENGINE=\"inline\""};

Machine own() {
  Machine machine = shipped("default");
  machine.name = "own";
  machine.fingerprint = kOwn;
  return machine;
}

std::string text_in(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void put(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class OwnMachine : public ::testing::Test {
 protected:
  // In a folder that does not exist yet.
  OwnMachine() : folder_(temporary_.path() + "/cache/unisono") {
    const auto written = write_own_machine(own(), folder_);
    EXPECT_TRUE(written.ok()) << (written.ok() ? "" : written.error().message);
  }
  std::string path() const { return own_machine_path(folder_); }
  std::string refusal(const Fingerprint& expected = kOwn) const {
    const auto read = read_own_machine(folder_, expected);
    return read.ok() ? "" : read.error().message;
  }

  test::TemporaryFolder temporary_;
  std::string folder_;
};

TEST_F(OwnMachine, IsReadAsItWasWritten) {
  const auto read = read_own_machine(folder_, kOwn);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, own());
}

TEST_F(OwnMachine, OfAnotherMachineVersionOrSettingsIsRefused) {
  Fingerprint other = kOwn;
  other.machine = "Another";
  EXPECT_EQ(refusal(other), path() +
                                ": made for machine \"Some CPU, 2 cores\", expected \"Another\""
                                "; run unisono tune");
  other = kOwn;
  other.version = "0.2.0";
  EXPECT_NE(refusal(other).find("made for version \"0.1.0\""), std::string::npos);
  other = kOwn;
  other.settings = "";
  EXPECT_NE(refusal(other).find("made for settings"), std::string::npos);
}

TEST_F(OwnMachine, DamagedIsRefusedWhereverItIs) {
  const std::string text = text_in(path());
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); i += 13) {
    std::string damaged = text;
    damaged[i] = damaged[i] == '1' ? '2' : '1';
    put(path(), damaged);
    ASSERT_NE(refusal(), "") << "byte " << i;
    ++refused;
  }
  EXPECT_GT(refused, 500);
}

TEST_F(OwnMachine, HalfWrittenIsRefused) {
  const std::string text = text_in(path());
  for (std::size_t length = 0; length + 2 < text.size(); length += 101) {
    put(path(), std::string_view(text).substr(0, length));
    EXPECT_TRUE(refusal().starts_with(path() + ":")) << length;
  }
}

TEST_F(OwnMachine, EditedSaysSo) {
  std::string text = text_in(path());
  text.replace(text.find("\"hosts\": 64"), 11, "\"hosts\": 65");
  put(path(), text);
  EXPECT_NE(refusal().find("the file is damaged or was edited"), std::string::npos) << refusal();
}

TEST_F(OwnMachine, WithoutFingerprintOrFileIsRefused) {
  put(path(), machine_text(shipped("default")));
  EXPECT_NE(refusal().find("expected a fingerprint"), std::string::npos);
  std::filesystem::remove(path());
  EXPECT_EQ(refusal(), path() + ": the machine file cannot be read");
}

TEST_F(OwnMachine, AFolderThatCannotBeMadeIsAnError) {
  put(temporary_.path() + "/file", "");
  EXPECT_FALSE(write_own_machine(own(), temporary_.path() + "/file/unisono").ok());
}

}  // namespace
}  // namespace unisono::model

// SPDX-License-Identifier: BSD-3-Clause
// The file of this user and machine: damaged, foreign and half-written ones are refused.
#include "model/own_machine.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/temporary_folder.hpp"
#include "model/default_machine.hpp"
#include "model/machine_file.hpp"
#include "unit/model/shipped.hpp"

namespace unisono::model::own_machine_test {
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
  EXPECT_EQ(refusal(), path() + ": No such file or directory");
}

base::Settings settings_of(const base::Environment& environment) {
  auto settings = base::Settings::from(environment);
  EXPECT_TRUE(settings.ok()) << (settings.ok() ? "" : settings.error().message);
  return *settings;
}

TEST(OwnFingerprint, HasTheSettingsThatChangeHowRanksWaitAsTheyAreWritten) {
  EXPECT_EQ(own_fingerprint(base::Settings()).settings, "");
  const Fingerprint own = own_fingerprint(settings_of(
      {{"UNISONO_SPIN", "20us"}, {"UNISONO_ENGINE", "helping"}, {"UNISONO_BUFFERS", "3M"}}));
  EXPECT_EQ(own.settings, "UNISONO_ENGINE=helping UNISONO_SPIN=20us");
  EXPECT_EQ(own.version, UNISONO_VERSION ", tune 2");
  EXPECT_NE(own.machine.find(" cores, "), std::string::npos) << own.machine;
}

TEST(OwnFingerprint, OfAProcessThatIsBoundToOneCoreIsTheSame) {
  const Fingerprint free = own_fingerprint(base::Settings());
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(own_fingerprint(base::Settings()), free);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

class FindMachine : public ::testing::Test {
 protected:
  FindMachine() : settings_(settings_of({{"XDG_CACHE_HOME", temporary_.path()}})) {}

  // The file of `unisono tune`.
  void write_own(const Fingerprint& fingerprint) {
    Machine machine = shipped("default");
    machine.name = "own";
    machine.fingerprint = fingerprint;
    EXPECT_TRUE(write_own_machine(machine, settings_.cache_folder()).ok());
  }
  static FoundMachine found(const base::Settings& settings) {
    auto machine = find_machine(settings);
    EXPECT_TRUE(machine.ok()) << (machine.ok() ? "" : machine.error().message);
    return machine.ok() ? std::move(*machine) : FoundMachine{};
  }

  test::TemporaryFolder temporary_;
  base::Settings settings_;
};

TEST_F(FindMachine, WithoutAnyFileIsTheDefaultOne) {
  for (const base::Settings& settings : {settings_, base::Settings()}) {
    const FoundMachine machine = found(settings);
    EXPECT_EQ(machine.machine, default_machine());
    EXPECT_EQ(machine.path, "");
    EXPECT_EQ(machine.note, "");
  }
}

TEST_F(FindMachine, IsThatOfTuneIfItIsOfThisMachine) {
  write_own(own_fingerprint(settings_));
  EXPECT_EQ(found(settings_).machine.name, "own");
  EXPECT_EQ(found(settings_).path, own_machine_path(settings_.cache_folder()));
  const base::Settings without =
      settings_of({{"XDG_CACHE_HOME", temporary_.path()}, {"UNISONO_MACHINE", "default"}});
  EXPECT_EQ(found(without).machine.name, "default");
}

TEST_F(FindMachine, ADamagedOrForeignFileOfTuneIsRefusedWithANote) {
  write_own(kOwn);
  FoundMachine machine = found(settings_);
  EXPECT_EQ(machine.machine, default_machine());
  EXPECT_EQ(machine.path, "");
  EXPECT_NE(machine.note.find("made for machine \"Some CPU"), std::string::npos) << machine.note;
  EXPECT_TRUE(machine.note.ends_with("; the default machine is taken")) << machine.note;
  put(own_machine_path(settings_.cache_folder()), "{");
  machine = found(settings_);
  EXPECT_EQ(machine.machine, default_machine());
  EXPECT_TRUE(machine.note.starts_with(own_machine_path(settings_.cache_folder()) + ":1: "))
      << machine.note;
}

TEST_F(FindMachine, ADirectoryInPlaceOfTheFileOfTuneIsRefusedWithANote) {
  const std::string path = own_machine_path(settings_.cache_folder());
  std::filesystem::create_directories(path);
  const FoundMachine machine = found(settings_);
  EXPECT_EQ(machine.machine, default_machine());
  EXPECT_EQ(machine.note, path + ": Is a directory; the default machine is taken");
}

TEST_F(FindMachine, IsTheFileThatTheUserNamesOfWhateverMachine) {
  write_own(own_fingerprint(settings_));
  Machine named = shipped("crescendo");
  const std::string path = temporary_.path() + "/named.json";
  ASSERT_TRUE(write_machine_file(named, path).ok());
  const base::Environment environment = {{"XDG_CACHE_HOME", temporary_.path()},
                                         {"UNISONO_MACHINE", path}};
  EXPECT_EQ(found(settings_of(environment)).machine, named);
  std::filesystem::remove(path);
  const auto missing = find_machine(settings_of(environment));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "UNISONO_MACHINE: " + path + ": No such file or directory");
  std::filesystem::create_directory(path);
  const auto directory = find_machine(settings_of(environment));
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().message, "UNISONO_MACHINE: " + path + ": Is a directory");
}

TEST_F(OwnMachine, AFolderThatCannotBeMadeIsAnError) {
  put(temporary_.path() + "/file", "");
  EXPECT_FALSE(write_own_machine(own(), temporary_.path() + "/file/unisono").ok());
}

}  // namespace
}  // namespace unisono::model::own_machine_test

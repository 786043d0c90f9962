// SPDX-License-Identifier: BSD-3-Clause
// bootstrap: which settings differ between ranks, in words.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/settings/settings.hpp"
#include "bootstrap/rendezvous/alike_settings.hpp"
#include "bootstrap/rendezvous/message.hpp"

namespace unisono::bootstrap::alike_settings_test {
namespace {

std::string differences(const std::vector<base::Environment>& environments) {
  std::vector<std::string> texts;
  for (const base::Environment& environment : environments) {
    texts.push_back(settings_text(*base::Settings::from(environment)));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return differing_settings(views);
}

TEST(AlikeSettings, EqualOnesAreNotNamed) {
  EXPECT_EQ(differences({{}, {}, {}}), "");
  EXPECT_EQ(differences({{{"UNISONO_BUFFERS", "1M"}}, {{"UNISONO_BUFFERS", "1M"}}}), "");
  EXPECT_EQ(differences({{{"UNISONO_LOG", "info"}}, {}}), "") << "may differ";
}

TEST(AlikeSettings, TheFewAreNamedWithTheirValueAndTheRestWithTheirs) {
  EXPECT_EQ(differences({{}, {{"UNISONO_BUFFERS", "1M"}}, {}}),
            "UNISONO_BUFFERS: rank 1 has 1M, all others have the default 64M");
  EXPECT_EQ(differences({{{"UNISONO_ALGORITHM", "allreduce:ring"}}, {}}),
            "UNISONO_ALGORITHM: rank 1 has not set it, rank 0 has allreduce:ring");
  EXPECT_EQ(differences({{{"UNISONO_LEARN", "on"}, {"UNISONO_CHANNELS", "2"}}, {}, {}}),
            "UNISONO_LEARN: rank 0 has on, all others have the default off; UNISONO_CHANNELS: "
            "rank 0 has 2, all others have the default 0");
}

TEST(AlikeSettings, SingleCopiesAreAmongThem) {
  EXPECT_EQ(differences({{}, {{"UNISONO_SINGLE_COPY", "off"}}}),
            "UNISONO_SINGLE_COPY: rank 0 has the default auto, rank 1 has off");
  EXPECT_EQ(differences({{{"UNISONO_SINGLE_COPY_FROM", "64"}}, {}}),
            "UNISONO_SINGLE_COPY_FROM: rank 1 has the default auto, rank 0 has 64");
}

TEST(AlikeSettings, ManyRanksAreCounted) {
  std::vector<base::Environment> environments(30);
  for (std::size_t rank = 10; rank < 20; ++rank) environments[rank] = {{"UNISONO_LEARN", "on"}};
  EXPECT_EQ(differences(environments),
            "UNISONO_LEARN: ranks 10, 11, 12, 13, 14, 15, 16, 17 and 2 more have on, all others "
            "have the default off");
}

TEST(AlikeSettings, LongValuesAreCutAndStillDiffer) {
  const std::string rules(5000, 'x');
  const std::string text = settings_text(*base::Settings::from({{"UNISONO_ALGORITHM", rules}}));
  EXPECT_LT(text.size(), kMostSettingsBytes);
  EXPECT_NE(
      differences({{{"UNISONO_ALGORITHM", rules + "a"}}, {{"UNISONO_ALGORITHM", rules + "b"}}}),
      "");
}

TEST(AlikeSettings, OtherTextsSayNothing) {
  const std::vector<std::string_view> texts = {"", ";;", "junk"};
  EXPECT_EQ(differing_settings(texts), "");
}

}  // namespace
}  // namespace unisono::bootstrap::alike_settings_test

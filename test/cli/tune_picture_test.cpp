// SPDX-License-Identifier: BSD-3-Clause
// The picture of `unisono tune`, and the best degrees, from times that are made up.
#include "tune/picture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace unisono::tools::tune::tune_picture_test {
namespace {

Tuning made_up() {
  Tuning tuning;
  for (int degree = 2; degree < 8; ++degree) {
    tuning.degrees.push_back({.what = "degree " + std::to_string(degree),
                              .measured_ns = 9000.0 + 100 * (degree - 4) * (degree - 4),
                              .plus_minus = 300,
                              .predicted_ns = 9000.0 + 100 * (degree - 3) * (degree - 3),
                              .ranks = 8,
                              .bytes = kDegreeBytes,
                              .degree = degree});
  }
  for (const int ranks : {2, 4}) {
    tuning.comparisons.push_back({"barrier", 500, 20, 600, ranks, 0});
    for (const std::int64_t bytes : {8, 4096, 65536}) {
      tuning.comparisons.push_back(
          {"reduce", 400.0 + static_cast<double>(bytes), 1e6, 500, ranks, bytes});
    }
  }
  return tuning;
}

// The part of the picture with this id.
std::string panel_of(const std::string& svg, const std::string& id) {
  const std::size_t begin = svg.find("<g id=\"" + id + "\">");
  if (begin == std::string::npos) return {};
  return svg.substr(begin, svg.find("</g>", begin) - begin);
}

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(TunePicture, HasAPointForEachDegreeAndALineThroughTheirPrices) {
  const std::string panel = panel_of(tuning_picture(made_up()), "degrees");
  EXPECT_EQ(count(panel, "class=\"measured\""), 6);
  EXPECT_EQ(count(panel, "class=\"predicted\""), 1);
  EXPECT_NE(panel.find("Reduce of 8 bytes, 8 ranks"), std::string::npos);
  EXPECT_NE(panel.find("degree 4: measured 9 us +- 0.3, predicted 9.1 us"), std::string::npos);
}

TEST(TunePicture, HasALineOverSizesForEachNumberOfRanks) {
  const std::string panel = panel_of(tuning_picture(made_up()), "sizes");
  EXPECT_EQ(count(panel, "class=\"measured\""), 6);  // and none of barriers
  EXPECT_EQ(count(panel, "class=\"predicted\""), 2);
  EXPECT_EQ(count(panel, ">64K<"), 1);
  EXPECT_EQ(count(panel, ">measured, 4 ranks<"), 1);
}

TEST(TunePicture, HasPlacesOnlyThatAreNumbers) {
  EXPECT_EQ(count(tuning_picture(made_up()), "nan"), 0);
  EXPECT_EQ(count(tuning_picture(made_up()), "inf"), 0);
}

TEST(TunePicture, SaysWhatWasNotMeasured) {
  const std::string svg = tuning_picture({});
  EXPECT_NE(panel_of(svg, "degrees").find("not measured"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"measured\""), 0);
}

TEST(BestDegree, IsThatOfTheLeastTime) {
  const BestDegrees best = best_degrees(made_up().degrees);
  EXPECT_EQ(best.measured, 4);
  EXPECT_EQ(best.predicted, 3);
  EXPECT_EQ(best_degrees({}).measured, 0);
}

}  // namespace
}  // namespace unisono::tools::tune::tune_picture_test

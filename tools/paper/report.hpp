// SPDX-License-Identifier: BSD-3-Clause
// Reports of papers for people and programs: a table, JSON, a page of Markdown, and a picture of
// the deviations for each paper. The same reports give the same texts. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "paper/claim.hpp"

namespace unisono::tools {

std::string report_table(const PaperReport& report);
nlohmann::ordered_json report_json(const PaperReport& report);

// `unused`: places of published numbers without a claim, each with a reason.
std::string report_page(std::span<const PaperReport> reports, std::span<const std::string> unused);
// An SVG: each claim's deviation as a bar beside its tolerance.
std::string deviation_picture(const PaperReport& report);

}  // namespace unisono::tools

// SPDX-License-Identifier: BSD-3-Clause
#include "profile/text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace unisono::profile {
namespace {

// Bytes above 127 stay: names of hosts and files are UTF-8, or else a reader replaces them.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string histogram(const Series::Totals& totals) {
  std::string out;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (totals.buckets[i] == 0) continue;
    out += fmt::format("{}[{},{}]", out.empty() ? "" : ",", bucket_begin(i), totals.buckets[i]);
  }
  return out;
}

std::string line_of(const Kind& kind, Form form, const Series::Totals& totals) {
  return fmt::format(
      R"({{"collective":{},"form":"{}","operator":{},"type":{},"size_class":{},"ranks":{},)"
      R"("hosts":{},"algorithm":{},"engine":{},"reason":{},"calls":{},"bytes":{},)"
      R"("least_bytes":{},"most_bytes":{},"predicted_ns":{},"unpredicted":{},"ns":{},)"
      R"("least_ns":{},"most_ns":{},"waits":{},"waited_ns":{},"histogram":[{}]}})"
      "\n",
      in_quotes(kind.collective), form == Form::blocking ? "blocking" : "started",
      in_quotes(kind.op), in_quotes(kind.type), kind.bytes_class, kind.ranks, kind.hosts,
      in_quotes(kind.algorithm), in_quotes(kind.engine), in_quotes(kind.reason), totals.calls,
      totals.bytes, totals.least_bytes, totals.most_bytes, totals.predicted_ns, totals.unpredicted,
      totals.ns, totals.least_ns, totals.most_ns, totals.waits, totals.waited_ns,
      histogram(totals));
}

}  // namespace

std::string first_line(const Origin& origin, const std::string& host, int process) {
  return fmt::format(
      R"({{"schema":"unisono-profile-rank","version":{},"rank":{},"ranks":{},"job":{},"host":{},)"
      R"("process":{},"machine":{}}})"
      "\n",
      kFileVersion, origin.rank, origin.ranks, in_quotes(origin.job), in_quotes(host), process,
      in_quotes(origin.machine));
}

std::string lines_of(const Row& row, std::size_t& count) {
  std::string out;
  for (int form = 0; form < kFormCount; ++form) {
    const Series::Totals totals = row.series[static_cast<std::size_t>(form)].totals();
    if (totals.calls == 0) continue;
    out += line_of(row.kind, static_cast<Form>(form), totals);
    ++count;
  }
  return out;
}

std::string last_line(std::size_t rows, const std::vector<std::string>& learned, bool has_ended) {
  std::string texts;
  for (const std::string& text : learned) texts += (texts.empty() ? "" : ",") + in_quotes(text);
  if (!texts.empty()) texts = fmt::format(R"(,"learned":[{}])", texts);
  return fmt::format(R"({{"end":{},"rows":{}{}}})"
                     "\n",
                     has_ended, rows, texts);
}

}  // namespace unisono::profile

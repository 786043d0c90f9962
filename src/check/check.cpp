// SPDX-License-Identifier: BSD-3-Clause
#include "check/check.hpp"

#include "check/execute.hpp"
#include "check/form.hpp"
#include "check/order.hpp"
#include "check/race.hpp"
#include "check/report.hpp"

namespace unisono::check {
namespace {

void prove_into(std::span<const Schedule> set, Report& report);
void prove_pass(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                Placement placement, Values& values, Report& report);

}  // namespace

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::malformed:
      return "malformed";
    case Rule::bounds:
      return "bounds";
    case Rule::bad_peer:
      return "bad_peer";
    case Rule::bad_predecessor:
      return "bad_predecessor";
    case Rule::never_filled:
      return "never_filled";
    case Rule::filled_twice:
      return "filled_twice";
    case Rule::wrong_source:
      return "wrong_source";
    case Rule::wrong_size:
      return "wrong_size";
    case Rule::unwaited_read:
      return "unwaited_read";
    case Rule::never_waited:
      return "never_waited";
    case Rule::race:
      return "race";
    case Rule::overlap:
      return "overlap";
    case Rule::deadlock:
      return "deadlock";
    case Rule::undefined_read:
      return "undefined_read";
    case Rule::missing:
      return "missing";
    case Rule::doubled:
      return "doubled";
    case Rule::misplaced:
      return "misplaced";
    case Rule::out_of_order:
      return "out_of_order";
    case Rule::bad_operand:
      return "bad_operand";
    case Rule::partial_sum:
      return "partial_sum";
    case Rule::by_several:
      return "by_several";
  }
  return "unknown";
}

std::vector<Violation> prove(std::span<const schedule::Schedule> set, int limit) {
  Report report(set, limit);
  prove_into(set, report);
  return std::move(report).take();
}

namespace {

// Each level relies on the one below: a set that fails a level is not checked by the next.
void prove_into(std::span<const Schedule> set, Report& report) {
  check_form(set, report);
  if (!report.empty()) return;
  check_by_one(set, report);
  const Links links = link_messages(set, report);
  if (!report.empty()) return;
  const auto run = run_order(set, links, report);
  if (!run) return;
  if (set.front().shape.collective == schedule::Collective::barrier) {
    check_barrier(set, links, *run, report);
  }
  const schedule::Shape& shape = set.front().shape;
  Values values(shape.ranks, shape.ordered);
  prove_pass(set, links, *run, Placement::separate, values, report);
  if (!report.empty()) return;
  report.begin_pass(Placement::in_place);
  check_overlap_in_place(set, report);
  if (!report.empty()) return;
  prove_pass(set, links, *run, Placement::in_place, values, report);
}

void prove_pass(std::span<const Schedule> set, const Links& links, std::span<const OpAt> run,
                Placement placement, Values& values, Report& report) {
  check_races(set, links, run, placement, report);
  if (report.empty()) check_outputs(set, run, placement, values, report);
}

}  // namespace
}  // namespace unisono::check

// SPDX-License-Identifier: BSD-3-Clause
// Mock-ups. Each puts the results of its parts where the call wants them. What only a part wants,
// such as the vector of a reduce at the other ranks, is scratch memory.
//
//   allreduce       reduce to rank 0, broadcast        reduce_scatter, allgather of the shares
//   reduce          allreduce                          reduce_scatter, gather of the shares
//   broadcast       scatter and allgather of shares
//   allgather       gather to rank 0, broadcast
//   gather          allgather
//   scatter         broadcast, then copy the own block
//   reduce_scatter  reduce to rank 0, scatter          allreduce, then copy the own block
//
// Steps and bytes: those of the parts.
// Source: Träff, Gropp and Thakur, IEEE TPDS 21(5), 2010.
#include <limits>

#include "algorithm/mock/mock.hpp"
#include "algorithm/rows.hpp"

namespace unisono::algorithm::mock {

namespace {

using two_level::InnerBuffers;

constexpr std::string_view kReduces[] = {"fnomial", "serial",       "fnomial-split", "binary",
                                         "chain",   "rabenseifner", "circulant",     "bine"};
constexpr std::string_view kBroadcasts[] = {
    "fnomial", "flat", "scatter-allgather", "chain", "double-tree", "circulant", "bine"};
constexpr std::string_view kAllreduces[] = {
    "pairwise", "reduce-broadcast",         "gather-release",        "split-release",
    "ring",     "reduce-scatter-allgather", "recursive-multiplying", "circulant",
    "bine"};
constexpr std::string_view kAllgathers[] = {"direct",
                                            "ring",
                                            "recursive-doubling",
                                            "hypercube",
                                            "bruck",
                                            "gather-release",
                                            "mesh2d",
                                            "gather-broadcast",
                                            "neighbor-exchange",
                                            "concurrent-broadcast",
                                            "prefix-send",
                                            "kprefix",
                                            "kshift",
                                            "kbruck",
                                            "pat"};
constexpr std::string_view kGathers[] = {"fnomial", "linear"};
constexpr std::string_view kScatters[] = {"fnomial", "linear"};
constexpr std::string_view kReduceScatters[] = {"pairwise",          "reduce-scatter", "ring",
                                                "recursive-halving", "circulant",      "pat"};

consteval ParameterSpec part_choice(std::string_view name, std::span<const std::string_view> rows) {
  return {.name = name,
          .low = 0,
          .high = static_cast<int>(rows.size()) - 1,
          .fallback = 0,
          .help = "the algorithm of that part",
          .names = rows};
}
consteval ParameterSpec value_of_part(std::string_view name) {
  return {.name = name,
          .low = kUsual,
          .high = std::numeric_limits<int>::max(),
          .fallback = kUsual,
          .help = "a parameter of that algorithm, if it has one"};
}

constexpr ParameterSpec kOfReduceBroadcast[] = {
    part_choice("reduce", kReduces), value_of_part("reduce-1"),
    value_of_part("reduce-2"),       part_choice("broadcast", kBroadcasts),
    value_of_part("broadcast-1"),    value_of_part("broadcast-2")};
constexpr ParameterSpec kOfShares[] = {part_choice("reduce_scatter", kReduceScatters),
                                       value_of_part("reduce_scatter-1"),
                                       value_of_part("reduce_scatter-2"),
                                       part_choice("allgather", kAllgathers),
                                       value_of_part("allgather-1"),
                                       value_of_part("allgather-2")};
constexpr ParameterSpec kOfSharesToOne[] = {part_choice("reduce_scatter", kReduceScatters),
                                            value_of_part("reduce_scatter-1"),
                                            value_of_part("reduce_scatter-2"),
                                            part_choice("gather", kGathers),
                                            value_of_part("gather-1"),
                                            value_of_part("gather-2")};
constexpr ParameterSpec kOfSharesFromOne[] = {
    part_choice("scatter", kScatters), value_of_part("scatter-1"),
    value_of_part("scatter-2"),        part_choice("allgather", kAllgathers),
    value_of_part("allgather-1"),      value_of_part("allgather-2")};
constexpr ParameterSpec kOfGatherBroadcast[] = {
    part_choice("gather", kGathers), value_of_part("gather-1"),
    value_of_part("gather-2"),       part_choice("broadcast", kBroadcasts),
    value_of_part("broadcast-1"),    value_of_part("broadcast-2")};
constexpr ParameterSpec kOfReduceThenScatter[] = {
    part_choice("reduce", kReduces),   value_of_part("reduce-1"),  value_of_part("reduce-2"),
    part_choice("scatter", kScatters), value_of_part("scatter-1"), value_of_part("scatter-2")};
constexpr ParameterSpec kOfAllreduce[] = {part_choice("allreduce", kAllreduces),
                                          value_of_part("allreduce-1"),
                                          value_of_part("allreduce-2")};
constexpr ParameterSpec kOfAllgather[] = {part_choice("allgather", kAllgathers),
                                          value_of_part("allgather-1"),
                                          value_of_part("allgather-2")};
constexpr ParameterSpec kOfBroadcast[] = {part_choice("broadcast", kBroadcasts),
                                          value_of_part("broadcast-1"),
                                          value_of_part("broadcast-2")};

constexpr Part kReduceBroadcast[] = {{Collective::reduce, Extent::vector, kReduces, 0},
                                     {Collective::broadcast, Extent::vector, kBroadcasts, 3}};
constexpr Part kShares[] = {{Collective::reduce_scatter, Extent::shares, kReduceScatters, 0},
                            {Collective::allgather, Extent::shares, kAllgathers, 3}};
constexpr Part kSharesToOne[] = {{Collective::reduce_scatter, Extent::shares, kReduceScatters, 0},
                                 {Collective::gather, Extent::shares, kGathers, 3}};
constexpr Part kSharesFromOne[] = {{Collective::scatter, Extent::shares, kScatters, 0},
                                   {Collective::allgather, Extent::shares, kAllgathers, 3}};
constexpr Part kGatherBroadcast[] = {{Collective::gather, Extent::blocks, kGathers, 0},
                                     {Collective::broadcast, Extent::vector, kBroadcasts, 3}};
constexpr Part kReduceThenScatter[] = {{Collective::reduce, Extent::vector, kReduces, 0},
                                       {Collective::scatter, Extent::blocks, kScatters, 3}};
constexpr Part kAllreduce[] = {{Collective::allreduce, Extent::vector, kAllreduces, 0}};
constexpr Part kAllgather[] = {{Collective::allgather, Extent::blocks, kAllgathers, 0}};
constexpr Part kBroadcast[] = {{Collective::broadcast, Extent::vector, kBroadcasts, 0}};

template <const auto& parts>
const char* refuse_parts(const Shape& shape, const Parameters& parameters) {
  return refuse(parts, shape, parameters);
}

// A part of shares combines at several ranks, and an allreduce at rank 0 for any root of a reduce.
constexpr bool may_be_by_one(Collective whole, Collective part) {
  return part == Collective::reduce ||
         (part == Collective::allreduce && whole != Collective::reduce);
}

template <const auto& parts>
bool by_one_of_parts(const Shape& shape, const Parameters& parameters) {
  return is_by_one(parts, shape, parameters);
}

// A vector of all ranks' elements: in the output if the rank has one, else in scratch memory.
Range output_or_scratch(Builder& b, bool has_output, std::int64_t count) {
  return has_output ? schedule::output(0, count) : b.scratch(count);
}

Schedule reduce_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kReduceBroadcast, rank);
  const Range output = schedule::output(0, shape.count);
  const auto reduced = mock.append(0, {schedule::input(0, shape.count), output, {}});
  // Rank 0 sends what it has put there; the others receive it there.
  mock.append(1, {output, output, reduced});
  return std::move(mock).take();
}

// The share of the reduce_scatter lies in scratch memory: its place in the output may be the one
// of input that others still need.
std::vector<OpId> append_shares(Mock& mock, const Shape& shape, int rank, Range& share) {
  share = mock.builder().scratch(schedule::block(mock.shape(0), rank).count);
  return mock.append(0, {schedule::input(0, shape.count), share, {}});
}

Schedule scattered(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kShares, rank);
  Range share;
  const auto scattered = append_shares(mock, shape, rank, share);
  mock.append(1, {share, schedule::output(0, shape.count), scattered});
  return std::move(mock).take();
}

Schedule scattered_to_one(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kSharesToOne, rank);
  Range share;
  const auto scattered = append_shares(mock, shape, rank, share);
  mock.append(1, {share, schedule::output(0, shape.count), scattered});
  return std::move(mock).take();
}

Schedule scattered_from_one(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kSharesFromOne, rank);
  Builder& b = mock.builder();
  const Range share = b.scratch(schedule::block(mock.shape(0), rank).count);
  const auto scattered = mock.append(0, {schedule::input(0, shape.count), share, {}});
  const Range vector = output_or_scratch(b, rank != shape.root, shape.count);
  mock.append(1, {share, vector, scattered});
  return std::move(mock).take();
}

Schedule gather_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kGatherBroadcast, rank);
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  const Range output = schedule::output(0, schedule::whole_count(shape));
  const auto gathered = mock.append(0, {own, output, {}});
  mock.append(1, {output, output, gathered});
  return std::move(mock).take();
}

Schedule reduce_then_scatter(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kReduceThenScatter, rank);
  const std::int64_t whole = schedule::whole_count(shape);
  const Range sum = rank == 0 ? mock.builder().scratch(whole) : Range{};
  const auto reduced = mock.append(0, {schedule::input(0, whole), sum, {}});
  const Range own = schedule::output(0, schedule::block(shape, rank).count);
  mock.append(1, {sum, own, reduced});
  return std::move(mock).take();
}

void copy_own_block(Builder& b, const Shape& shape, int rank, Range vector,
                    const std::vector<OpId>& done) {
  const schedule::Block own = schedule::block(shape, rank);
  vector.offset += own.offset;
  vector.count = own.count;
  b.copy(schedule::output(0, own.count), vector);
  for (const OpId before : done) b.also_after(before);
}

Schedule reduce_scatter_by_allreduce(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kAllreduce, rank);
  const std::int64_t whole = schedule::whole_count(shape);
  const Range sum = mock.builder().scratch(whole);
  const auto reduced = mock.append(0, {schedule::input(0, whole), sum, {}});
  copy_own_block(mock.builder(), shape, rank, sum, reduced);
  return std::move(mock).take();
}

Schedule reduce_by_allreduce(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kAllreduce, rank);
  const Range sum = output_or_scratch(mock.builder(), rank == shape.root, shape.count);
  mock.append(0, {schedule::input(0, shape.count), sum, {}});
  return std::move(mock).take();
}

Schedule gather_by_allgather(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kAllgather, rank);
  const std::int64_t whole = schedule::whole_count(shape);
  const Range vector = output_or_scratch(mock.builder(), rank == shape.root, whole);
  const Range own = schedule::input(0, schedule::block(shape, rank).count);
  mock.append(0, {own, vector, {}});
  return std::move(mock).take();
}

Schedule scatter_by_broadcast(const Shape& shape, const Parameters& parameters, int rank) {
  Mock mock(shape, parameters, kBroadcast, rank);
  const std::int64_t whole = schedule::whole_count(shape);
  const Range input = schedule::input(0, whole);
  const bool is_root = rank == shape.root;
  const Range vector = is_root ? input : mock.builder().scratch(whole);
  const auto done = mock.append(0, {input, vector, {}});
  copy_own_block(mock.builder(), shape, rank, vector, done);
  return std::move(mock).take();
}

constexpr std::string_view kSource = "Träff, Gropp and Thakur 2010";
constexpr std::string_view kThoseOfParts = "those of the parts";
constexpr std::string_view kWins = "the parts are faster than the algorithms made for it";
constexpr std::string_view kOnly = "each part can do it";

template <const auto& parts>
constexpr Algorithm row(std::string_view name, Collective collective, std::string_view idea,
                        std::span<const ParameterSpec> parameters, Build* build) {
  return {
      .name = name,
      .collective = collective,
      .idea = idea,
      .source = kSource,
      .steps = kThoseOfParts,
      .bytes = kThoseOfParts,
      .wins = kWins,
      .keeps_order = true,
      .by_one = may_be_by_one(collective, parts[0].collective) ? by_one_of_parts<parts> : nullptr,
      .parameters = parameters,
      .parts = parts,
      .only = kOnly,
      .refuse = refuse_parts<parts>,
      .build = build};
}

using enum Collective;

constexpr Algorithm kRows[] = {
    row<kSharesFromOne>("mock-scatter-allgather", broadcast,
                        "scatter shares of the vector, then allgather them", kOfSharesFromOne,
                        scattered_from_one),
    row<kAllreduce>("mock-allreduce", reduce, "allreduce; other ranks drop the result",
                    kOfAllreduce, reduce_by_allreduce),
    row<kSharesToOne>("mock-reduce_scatter-gather", reduce,
                      "reduce_scatter of shares of the vector, then gather them", kOfSharesToOne,
                      scattered_to_one),
    row<kReduceBroadcast>("mock-reduce-broadcast", allreduce, "reduce to rank 0, then broadcast",
                          kOfReduceBroadcast, reduce_broadcast),
    row<kShares>("mock-reduce_scatter-allgather", allreduce,
                 "reduce_scatter of shares of the vector, then allgather them", kOfShares,
                 scattered),
    row<kGatherBroadcast>("mock-gather-broadcast", allgather, "gather to rank 0, then broadcast",
                          kOfGatherBroadcast, gather_broadcast),
    row<kAllgather>("mock-allgather", gather, "allgather; other ranks drop the result",
                    kOfAllgather, gather_by_allgather),
    row<kBroadcast>("mock-broadcast", scatter, "broadcast all blocks; each rank copies its own",
                    kOfBroadcast, scatter_by_broadcast),
    row<kReduceThenScatter>("mock-reduce-scatter", reduce_scatter,
                            "reduce to rank 0, then scatter the blocks", kOfReduceThenScatter,
                            reduce_then_scatter),
    row<kAllreduce>("mock-allreduce", reduce_scatter, "allreduce; each rank copies its own block",
                    kOfAllreduce, reduce_scatter_by_allreduce),
};

}  // namespace

std::span<const Algorithm> rows() { return kRows; }

}  // namespace unisono::algorithm::mock

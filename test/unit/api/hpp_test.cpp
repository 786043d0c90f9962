// SPDX-License-Identifier: BSD-3-Clause
// unisono.hpp: every call reaches its C function with the right arguments, handles end once, errors
// become exceptions. Ranks are threads of this process.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <typeinfo>
#include <unisono/unisono.hpp>
#include <utility>
#include <vector>

namespace {

using unisono::communicator;
using unisono::compare;
using unisono::op;

// Runs body(world) on each rank of a job of threads.
void on_ranks(int ranks, const std::function<void(communicator&)>& body) {
  const unisono::threads group(ranks);
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    running.emplace_back([&group, &body, rank] {
      try {
        unisono::job job(group, rank);
        body(job.world());
        job.finalize();
      } catch (const std::exception& failure) {
        ADD_FAILURE() << "rank " << rank << ": " << failure.what();
      }
    });
  }
  for (std::thread& each : running) each.join();
}

// The code of the unisono::error that `call` throws; UNISONO_OK if it throws nothing.
template <class Call>
int code_of(Call call) {
  try {
    call();
    return UNISONO_OK;
  } catch (const unisono::error& failure) {
    EXPECT_NE(std::string(failure.what()), "");
    return failure.code();
  }
}

struct Matrix {
  std::int64_t a, b, c, d;

  bool operator==(const Matrix&) const = default;
};

// Does not commute, so that the order of ranks shows.
struct Multiply {
  Matrix operator()(const Matrix& x, const Matrix& y) const {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
  }
};

}  // namespace

template <>
struct unisono::datatype<Matrix> {
  static unisono_type_t value() {
    static const unisono_type_t type = unisono::create_type<Matrix>();
    return type;
  }
};

namespace {

TEST(Hpp, MapsTypes) {
  EXPECT_EQ(unisono::datatype<std::byte>::value(), UNISONO_BYTE);
  EXPECT_EQ(unisono::datatype<char>::value(), UNISONO_BYTE);
  EXPECT_EQ(unisono::datatype<std::int8_t>::value(), UNISONO_INT8);
  EXPECT_EQ(unisono::datatype<short>::value(), UNISONO_INT16);
  EXPECT_EQ(unisono::datatype<int>::value(), UNISONO_INT32);
  EXPECT_EQ(unisono::datatype<long>::value(), sizeof(long) == 8 ? UNISONO_INT64 : UNISONO_INT32);
  EXPECT_EQ(unisono::datatype<long long>::value(), UNISONO_INT64);
  EXPECT_EQ(unisono::datatype<std::uint8_t>::value(), UNISONO_UINT8);
  EXPECT_EQ(unisono::datatype<std::uint16_t>::value(), UNISONO_UINT16);
  EXPECT_EQ(unisono::datatype<std::uint32_t>::value(), UNISONO_UINT32);
  EXPECT_EQ(unisono::datatype<std::uint64_t>::value(), UNISONO_UINT64);
  EXPECT_EQ(unisono::datatype<unisono::float16>::value(), UNISONO_FLOAT16);
  EXPECT_EQ(unisono::datatype<unisono::bfloat16>::value(), UNISONO_BFLOAT16);
  EXPECT_EQ(unisono::datatype<float>::value(), UNISONO_FLOAT32);
  EXPECT_EQ(unisono::datatype<double>::value(), UNISONO_FLOAT64);
  EXPECT_EQ(unisono::datatype<std::complex<float>>::value(), UNISONO_COMPLEX64);
  EXPECT_EQ(unisono::datatype<std::complex<double>>::value(), UNISONO_COMPLEX128);
  EXPECT_FALSE(unisono::element<bool>);
  EXPECT_FALSE(unisono::element<int*>);
}

// A C++ type stands for a datatype only if the library counts the same bytes for it.
template <class T>
void expect_same_size() {
  EXPECT_EQ(unisono_type_size(unisono::datatype<T>::value()), sizeof(T)) << typeid(T).name();
}

TEST(Hpp, TypesHaveTheLibrarysSizes) {
  expect_same_size<std::byte>();
  expect_same_size<int>();
  expect_same_size<unsigned long>();
  expect_same_size<unisono::float16>();
  expect_same_size<unisono::bfloat16>();
  expect_same_size<std::complex<float>>();
  expect_same_size<std::complex<double>>();
  expect_same_size<unisono::located<std::int16_t>>();
  expect_same_size<unisono::located<std::int32_t>>();
  expect_same_size<unisono::located<std::int64_t>>();
  expect_same_size<unisono::located<float>>();
  expect_same_size<unisono::located<double>>();
  expect_same_size<Matrix>();
}

TEST(Hpp, HandlesMoveButDoNotCopy) {
  EXPECT_FALSE(std::is_copy_constructible_v<unisono::request>);
  EXPECT_FALSE(std::is_copy_constructible_v<unisono::plan>);
  EXPECT_FALSE(std::is_copy_constructible_v<communicator>);
  EXPECT_FALSE(std::is_copy_constructible_v<unisono::job>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<unisono::request>);
  EXPECT_TRUE(std::is_nothrow_move_assignable_v<unisono::plan>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<communicator>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<unisono::job>);
}

// A temporary container would die before a started collective ends.
TEST(Hpp, TakesNoTemporaryContainers) {
  EXPECT_TRUE(unisono::output_buffer<std::vector<int>&>);
  EXPECT_FALSE(unisono::output_buffer<std::vector<int>>);
  EXPECT_TRUE(unisono::output_buffer<std::span<int>>);
  EXPECT_FALSE(unisono::output_buffer<std::span<const int>>);
  EXPECT_FALSE(unisono::buffer<std::vector<std::string>&>);
}

TEST(Hpp, BlockingCollectives) {
  on_ranks(4, [](communicator& world) {
    const int rank = world.rank();
    ASSERT_EQ(world.size(), 4);
    world.barrier();

    std::vector<int> data = rank == 2 ? std::vector{1, 2, 3} : std::vector{0, 0, 0};
    world.broadcast(data, 2);
    EXPECT_EQ(data, (std::vector{1, 2, 3}));
    EXPECT_EQ(world.broadcast(rank * 1.5, 3), 4.5);

    const std::array<long, 2> mine{rank + 1L, 10L * (rank + 1)};
    std::array<long, 2> sum{};
    world.reduce(mine, std::span(sum).first(rank == 1 ? 2 : 0), op::sum, 1);
    EXPECT_EQ(sum, (rank == 1 ? std::array{10L, 100L} : std::array{0L, 0L}));

    world.allreduce(mine, sum, op::prod);
    EXPECT_EQ(sum, (std::array{24L, 240000L}));
    EXPECT_EQ(world.allreduce(rank, op::max), 3);

    std::vector<long> all(8);
    world.allgather(mine, all);
    EXPECT_EQ(all, (std::vector{1L, 10L, 2L, 20L, 3L, 30L, 4L, 40L}));
    EXPECT_EQ(world.allgather(rank * rank), (std::vector{0, 1, 4, 9}));
  });
}

TEST(Hpp, InPlace) {
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    std::vector<int> values{rank, 1};
    world.allreduce(unisono::in_place, values, op::sum);
    EXPECT_EQ(values, (std::vector{3, 3}));

    std::vector<int> gathered(6, -1);
    gathered[2 * static_cast<std::size_t>(rank)] = rank;
    gathered[2 * static_cast<std::size_t>(rank) + 1] = rank + 10;
    world.allgather(unisono::in_place, gathered);
    EXPECT_EQ(gathered, (std::vector{0, 10, 1, 11, 2, 12}));

    std::vector<int> total{rank + 1};
    if (rank == 0) {
      world.reduce(unisono::in_place, total, op::sum, 0);
      EXPECT_EQ(total, std::vector{6});
    } else {
      world.reduce(total, std::span<int>(), op::sum, 0);
    }
  });
}

TEST(Hpp, MovesOfBlocks) {
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    const std::array<int, 2> mine{rank, rank + 10};
    std::vector<int> all(rank == 1 ? 6 : 0);
    world.gather(mine, all, 1);
    EXPECT_EQ(all, (rank == 1 ? std::vector{0, 10, 1, 11, 2, 12} : std::vector<int>{}));
    std::array<int, 2> back{};
    world.scatter(all, back, 1);
    EXPECT_EQ(back, mine);
    if (rank == 1) {
      all[2] = -1;
      world.gather(unisono::in_place, all, 1);
      EXPECT_EQ(all, (std::vector{0, 10, -1, 11, 2, 12}));
      world.scatter(all, unisono::in_place, 1);
    } else {
      world.gather(mine, std::span<int>(), 1);
      world.scatter(std::span<const int>(), back, 1);
      EXPECT_EQ(back, mine);
    }
    const std::array<int, 3> given{rank * 3, rank * 3 + 1, rank * 3 + 2};
    std::array<int, 3> taken{};
    const std::array<int, 3> expected{rank, rank + 3, rank + 6};
    world.start().alltoall(given, taken).wait();
    EXPECT_EQ(taken, expected);
    taken = given;
    world.plan().alltoall(unisono::in_place, taken).run();
    EXPECT_EQ(taken, expected);
  });
}

TEST(Hpp, ScansAndReduceScatter) {
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    const std::array<int, 3> input{rank, 10, rank + 1};
    std::array<int, 1> one{};
    world.reduce_scatter_block(input, one, op::sum);
    EXPECT_EQ(one[0], (std::array{3, 30, 6}[static_cast<std::size_t>(rank)]));
    std::array<int, 3> whole = input;
    world.reduce_scatter_block(unisono::in_place, whole, op::sum);
    EXPECT_EQ(whole[0], one[0]);
    std::array<int, 3> upto{};
    world.scan(input, upto, op::sum);
    EXPECT_EQ(upto[1], 10 * (rank + 1));
    std::array<int, 3> below{};
    world.start().exscan(input, std::span(below).first(rank == 0 ? 0 : 3), op::sum).wait();
    EXPECT_EQ(below[1], 10 * rank);
    const std::array<std::int64_t, 3> counts{2, 0, 1};
    std::vector<int> part(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
    world.reduce_scatter(input, part, counts, op::sum);
    const std::vector<int> parts[] = {{3, 30}, {}, {6}};
    EXPECT_EQ(part, parts[rank]);
  });
}

TEST(Hpp, BlocksOfDifferentLengths) {
  struct Opaque {  // travels as bytes
    std::int16_t a, b;
    std::int16_t c;
  };
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    const std::array<std::int64_t, 3> counts{1, 0, 2};
    const std::array<std::int64_t, 3> places{4, 0, 1};
    const std::vector<int> mine(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]),
                                rank + 7);
    std::vector<int> packed(3);
    std::vector<int> placed(5, -1);
    world.allgatherv(mine, packed, counts);
    world.start().allgatherv(mine, placed, counts, places).wait();
    EXPECT_EQ(packed, (std::vector{7, 9, 9}));
    EXPECT_EQ(placed, (std::vector{-1, 9, 9, -1, 7}));
    const std::array<int, 3> receives{0, 1, 0};
    std::vector<int> here(rank == 1 ? 3 : 0);
    world.plan().many_to_many(mine, here, counts, receives).run();
    EXPECT_EQ(here, (rank == 1 ? packed : std::vector<int>{}));

    const std::vector<Opaque> values(mine.size(), Opaque{1, 2, static_cast<std::int16_t>(rank)});
    std::vector<Opaque> all(5);
    world.allgatherv(values, all, counts, places);
    EXPECT_EQ(all[4].b, 2);
    EXPECT_EQ(all[1].c, 2);
    EXPECT_EQ(all[2].c, 2);
  });
}

TEST(Hpp, BlocksThatOnlyTheirEndsKnow) {
  struct Opaque {  // travels as bytes
    std::int16_t a, b;
    std::int16_t c;
  };
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    const auto own = static_cast<std::size_t>(rank);
    const std::array<std::int64_t, 3> counts{1, 0, 2};
    const std::array<std::int64_t, 3> places{4, 0, 1};
    const std::vector<int> mine(static_cast<std::size_t>(counts[own]), rank + 7);
    std::vector<int> placed(rank == 1 ? 5 : 0, -1);
    if (rank == 1) {
      world.gatherv(mine, placed, counts, 1, places);
    } else {
      world.gatherv(mine, placed, {}, 1);
    }
    EXPECT_EQ(placed, (rank == 1 ? std::vector{-1, 9, 9, -1, 7} : std::vector<int>{}));
    std::vector<int> back(mine.size());
    world.start().scatterv(placed, back, counts, 1, places).wait();
    EXPECT_EQ(back, mine);
    if (rank == 1) {
      world.plan().scatterv(placed, unisono::in_place, counts, 1, places).run();
      world.start().gatherv(unisono::in_place, placed, counts, 1, places).wait();
    } else {
      world.plan().scatterv(placed, back, {}, 1).run();
      world.plan().gatherv(mine, placed, {}, 1).run();
    }

    // Rank r sends r + 1 values to everyone.
    const std::array<std::int64_t, 3> sent{rank + 1, rank + 1, rank + 1};
    const std::array<std::int64_t, 3> received{1, 2, 3};
    const std::array<std::int64_t, 3> over_each_other{0, 0, 0};
    const std::vector<Opaque> input(own + 1, Opaque{1, 2, static_cast<std::int16_t>(rank)});
    std::vector<Opaque> output(6);
    world.alltoallv(input, output, sent, received, over_each_other);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(output[i].c, (std::array{0, 1, 1, 2, 2, 2}[i]));
    std::vector<int> swapped{rank, rank, rank};
    const std::array<std::int64_t, 3> ones{1, 1, 1};
    world.plan().alltoallv(unisono::in_place, swapped, {}, ones).run();
    EXPECT_EQ(swapped, (std::vector{0, 1, 2}));
  });
}

TEST(Hpp, BlocksWithTypes) {
  on_ranks(2, [](communicator& world) {
    const int rank = world.rank();
    const std::array<std::int64_t, 2> counts{1, 3};
    const std::array<unisono_type_t, 2> types{UNISONO_FLOAT64, UNISONO_INT16};
    const std::array<std::int64_t, 2> both_from_rank[] = {{1, 1}, {3, 3}};
    const std::array<unisono_type_t, 2> types_of_rank[] = {{types[0], types[0]},
                                                           {types[1], types[1]}};
    struct Two {
      double number = -1;
      std::array<std::int16_t, 4> words{};
    };
    std::array<Two, 1> output{};
    const std::array<std::int64_t, 2> to_places{0, 8};
    const std::array<std::int64_t, 2> from_start{0, 0};
    const std::array<double, 1> number{2.5};
    const std::array<std::int16_t, 3> words{4, 5, 6};
    const unisono::typed_blocks sent{both_from_rank[rank], types_of_rank[rank], from_start};
    const unisono::typed_blocks received{counts, types, to_places};
    std::span<const std::byte> bytes = std::as_bytes(std::span(words));
    if (rank == 0) bytes = std::as_bytes(std::span(number));
    world.alltoallw(bytes, output, sent, received);
    EXPECT_EQ(output[0].number, 2.5);
    EXPECT_EQ(output[0].words, (std::array<std::int16_t, 4>{4, 5, 6, 0}));
    // The first block of rank 0 stays; rank 1 has no such block.
    const std::array<std::int64_t, 2> few[] = {{1, 0}, {0, 1}};
    world.plan().alltoallw(unisono::in_place, output, {}, {few[rank], types, to_places}).run();
    world.start().alltoallw(bytes, output, sent, received).wait();
    EXPECT_EQ(output[0].number, 2.5);
  });
}

TEST(Hpp, BlockListsThatDoNotFitAreAnErrorOnEveryRank) {
  on_ranks(2, [](communicator& world) {
    const std::array<std::int64_t, 2> counts{1, 1};
    const std::array<int, 2> given{};
    const bool odd = world.rank() == 0;
    std::array<int, 1> one{};
    std::array<int, 2> two{};
    std::array<int, 2> given_out{};
    const int expected = odd ? UNISONO_ERROR_ARGUMENT : UNISONO_ERROR_PEER_ARGUMENT;
    const auto expect_error = [&](auto call) {
      communicator twin = world.dup();
      EXPECT_EQ(code_of([&] {
                  call(twin);
                  twin.barrier();
                }),
                expected);
    };
    expect_error(
        [&](communicator& c) { c.allgatherv(one, two, std::span(counts).first(odd ? 1 : 2)); });
    expect_error(
        [&](communicator& c) { c.allgatherv(one, std::span(two).first(odd ? 1 : 2), counts); });
    expect_error([&](communicator& c) {
      c.reduce_scatter(std::span(two).first(odd ? 1 : 2), one, counts, op::sum);
    });
    expect_error([&](communicator& c) { c.alltoall(std::span(given).first(odd ? 0 : 2), two); });
    expect_error([&](communicator& c) { c.scatter(std::span(two).first(odd ? 1 : 2), one, 0); });
    const auto some = [&](std::size_t right) {
      return std::span(two).first(odd ? right - 1 : right);
    };
    expect_error([&](communicator& c) { c.gatherv(one, some(2), counts); });
    expect_error([&](communicator& c) { c.gatherv(one, two, std::span(counts).first(1)); });
    expect_error([&](communicator& c) { c.scatterv(some(2), one, counts); });
    expect_error([&](communicator& c) { c.scatterv(two, some(1), counts); });
    expect_error([&](communicator& c) { c.alltoallv(some(2), given_out, counts, counts); });
    expect_error([&](communicator& c) { c.alltoallv(given, some(2), counts, counts); });
    expect_error([&](communicator& c) {
      c.alltoallv(given, two, std::span(counts).first(odd ? 1 : 2), counts);
    });
    const std::array<unisono_type_t, 2> types{UNISONO_INT32, UNISONO_INT32};
    const unisono::typed_blocks blocks{counts, types};
    expect_error([&](communicator& c) { c.alltoallw(given, some(2), blocks, blocks); });
    expect_error([&](communicator& c) {
      c.alltoallw(given, two, {counts, std::span(types).first(odd ? 1 : 2)}, blocks);
    });
  });
}

TEST(Hpp, EmptyBuffers) {
  on_ranks(2, [](communicator& world) {
    std::vector<double> none;
    world.broadcast(none);
    world.allreduce(none, std::span<double>(), op::sum);
    world.allgather(none, std::span<double>());
    EXPECT_EQ(world.allreduce(1, op::sum), 2);
  });
}

TEST(Hpp, MinlocAndMaxloc) {
  on_ranks(3, [](communicator& world) {
    const std::int32_t rank = world.rank();
    const unisono::located<double> mine{rank == 1 ? -1.0 : 5.0, rank};
    EXPECT_EQ(world.allreduce(mine, op::minloc), (unisono::located<double>{-1.0, 1}));
    EXPECT_EQ(world.allreduce(mine, op::maxloc), (unisono::located<double>{5.0, 0}));
  });
}

TEST(Hpp, OwnTypeAndOperatorKeepTheOrderOfRanks) {
  static const op multiply = unisono::create_op<Matrix>(Multiply{}, unisono::commutes::no);
  on_ranks(5, [](communicator& world) {
    const auto matrix_of = [](std::int64_t rank) { return Matrix{1, rank + 1, rank, 1}; };
    Matrix expected = matrix_of(0);
    for (int rank = 1; rank < 5; ++rank) expected = Multiply{}(expected, matrix_of(rank));
    EXPECT_EQ(world.allreduce(matrix_of(world.rank()), multiply), expected);
  });
}

struct Particle {
  float position[3];
  std::int16_t kind;
};

TEST(Hpp, MovesTypesWithoutADatatypeAsBytes) {
  on_ranks(3, [](communicator& world) {
    const auto rank = static_cast<std::int16_t>(world.rank());
    const std::vector<Particle> all =
        world.allgather(Particle{{static_cast<float>(rank), 0.5F, 0.25F}, rank});
    ASSERT_EQ(all.size(), 3U);
    for (std::int16_t i = 0; i < 3; ++i) {
      const Particle& each = all[static_cast<std::size_t>(i)];
      EXPECT_EQ(each.kind, i);
      EXPECT_EQ(each.position[0], static_cast<float>(i));
    }
    EXPECT_EQ(world.broadcast(Particle{{}, rank}, 2).kind, 2);
  });
}

TEST(Hpp, SplitPhase) {
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    int sum = 0, most = 0;
    std::vector<int> all(3);
    std::vector<unisono::request> requests;
    requests.push_back(world.start().allreduce(std::span(&rank, 1), std::span(&sum, 1), op::sum));
    requests.push_back(
        world.start().reduce(std::span(&rank, 1), std::span(&most, rank == 0 ? 1 : 0), op::max));
    requests.push_back(world.start().allgather(std::span(&rank, 1), all));
    requests.push_back(world.start().barrier());
    EXPECT_TRUE(static_cast<bool>(requests[0]));
    std::vector<bool> seen(4);
    while (const auto index = unisono::wait_any(requests)) {
      ASSERT_LT(*index, 4U);
      EXPECT_FALSE(seen[*index]);
      EXPECT_FALSE(static_cast<bool>(requests[*index]));
      seen[*index] = true;
    }
    EXPECT_EQ(seen, std::vector<bool>(4, true));
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(most, rank == 0 ? 2 : 0);
    EXPECT_EQ(all, (std::vector{0, 1, 2}));

    int value = rank == 1 ? 7 : 0;
    unisono::request last = world.start().broadcast(std::span(&value, 1), 1);
    while (!last.test()) {
    }
    EXPECT_EQ(value, 7);
    EXPECT_FALSE(static_cast<bool>(last));
  });
}

TEST(Hpp, WaitAll) {
  on_ranks(2, [](communicator& world) {
    std::array<int, 2> input{world.rank() + 1, 5}, output{};
    std::array<unisono::request, 3> requests;
    for (std::size_t i = 0; i < 2; ++i) {
      requests[i] =
          world.start().allreduce(std::span(&input[i], 1), std::span(&output[i], 1), op::sum);
    }
    unisono::wait_all(requests);
    EXPECT_EQ(output, (std::array{3, 10}));
    EXPECT_EQ(unisono::wait_any(requests), std::nullopt);
  });
}

// The buffer outlives the request, so the destructor has to wait, also of one moved from another.
TEST(Hpp, RequestWaitsWhenDestroyed) {
  on_ranks(2, [](communicator& world) {
    int sum = 0;
    const int rank = world.rank();
    {
      unisono::request first =
          world.start().allreduce(std::span(&rank, 1), std::span(&sum, 1), op::sum);
      unisono::request second = std::move(first);
      EXPECT_FALSE(static_cast<bool>(first));  // NOLINT(bugprone-use-after-move): that is the point
    }
    EXPECT_EQ(sum, 1);
    EXPECT_EQ(world.info().operations, 1);
  });
}

TEST(Hpp, Plans) {
  on_ranks(3, [](communicator& world) {
    const int rank = world.rank();
    int input = 0, sum = 0, least = 0, shared = 0;
    std::array<int, 3> all{};
    unisono::plan add = world.plan().allreduce(std::span(&input, 1), std::span(&sum, 1), op::sum);
    unisono::plan smallest =
        world.plan().reduce(std::span(&input, 1), std::span(&least, rank == 2 ? 1 : 0), op::min, 2);
    unisono::plan share = world.plan().broadcast(std::span(&shared, 1), 1);
    unisono::plan collect = world.plan().allgather(std::span(&input, 1), all);
    unisono::plan meet = world.plan().barrier();
    for (int turn = 0; turn < 5; ++turn) {
      input = 10 * turn + rank;
      shared = rank == 1 ? turn : -1;
      add.run();
      smallest.run();
      share.run();
      collect.start();
      while (!collect.test()) {
      }
      meet.start();
      meet.wait();
      EXPECT_EQ(sum, 30 * turn + 3);
      EXPECT_EQ(least, rank == 2 ? 10 * turn : 0);
      EXPECT_EQ(shared, turn);
      EXPECT_EQ(all, (std::array{10 * turn, 10 * turn + 1, 10 * turn + 2}));
    }
    unisono::plan moved = std::move(add);
    moved.start();  // its destructor has to wait for this one
  });
}

// The outputs of all collectives in one form. `end` makes a call and completes it.
template <class Calls, class End>
std::vector<std::vector<int>> results_of(Calls calls, End end) {
  const int rank = calls.rank();
  const std::vector<int> three{rank, 2 * rank, rank + 5};
  const std::vector<int> own(rank == 1 ? 0 : 1, rank + 7);
  const std::array<std::int64_t, 3> counts{1, 0, 1}, ones{1, 1, 1};
  const std::array<int, 3> receives{0, 1, 1};
  const std::array<unisono_type_t, 3> types{UNISONO_INT32, UNISONO_INT32, UNISONO_INT32};
  std::vector<std::vector<int>> all;
  const auto output = [&](std::size_t length) -> std::vector<int>& {
    return all.emplace_back(length, -1);
  };
  end([&] { return calls.barrier(); });
  output(1)[0] = rank;
  end([&] { return calls.broadcast(all.back(), 2); });
  end([&] { return calls.reduce(three, output(3), op::max, 1); });
  end([&] { return calls.allreduce(three, output(3), op::sum); });
  end([&] { return calls.allgather(three, output(9)); });
  end([&] { return calls.gather(three, output(9), 0); });
  end([&] { return calls.scatter(three, output(1), 2); });
  end([&] { return calls.alltoall(three, output(3)); });
  end([&] { return calls.reduce_scatter_block(three, output(1), op::sum); });
  end([&] { return calls.scan(three, output(3), op::sum); });
  end([&] { return calls.exscan(three, output(3), op::sum); });
  end([&] { return calls.allgatherv(own, output(2), counts); });
  end([&] { return calls.many_to_many(own, output(2), counts, receives); });
  end([&] { return calls.reduce_scatter(std::span(three).first(2), output(1), counts, op::sum); });
  end([&] { return calls.gatherv(own, output(2), counts, 1); });
  end([&] { return calls.scatterv(three, output(own.size()), counts, 1); });
  end([&] { return calls.alltoallv(three, output(3), ones, ones); });
  const unisono::typed_blocks blocks{ones, types};
  end([&] { return calls.alltoallw(three, output(3), blocks, blocks); });
  return all;
}

TEST(Hpp, EveryCollectiveHasThreeFormsWithOneResult) {
  on_ranks(3, [](communicator& world) {
    const auto blocking = results_of<communicator&>(world, [](auto call) { call(); });
    EXPECT_EQ(blocking[2], (std::vector{3, 6, 18}));
    EXPECT_EQ(world.info().operations, 18);
    EXPECT_EQ(results_of(world.start(), [](auto call) { call().wait(); }), blocking);
    EXPECT_EQ(world.info().operations, 36);
    EXPECT_EQ(results_of(world.plan(), [](auto call) { call().run(); }), blocking);
    EXPECT_EQ(world.info().operations, 54);
  });
}

TEST(Hpp, Communicators) {
  on_ranks(4, [](communicator& world) {
    const int rank = world.rank();
    communicator twin = world.dup();
    EXPECT_EQ(twin.rank(), rank);
    EXPECT_EQ(twin.allreduce(1, op::sum), 4);

    std::optional<communicator> half = world.split(rank % 2, -rank);
    ASSERT_TRUE(half.has_value());
    EXPECT_EQ(half->size(), 2);
    EXPECT_EQ(half->rank(), rank < 2 ? 1 : 0);
    EXPECT_EQ(half->allreduce(rank, op::sum), rank % 2 == 0 ? 2 : 4);
    EXPECT_EQ(world.split(rank == 3 ? -1 : 0).has_value(), rank != 3);

    const std::array<int, 2> list{3, 0};
    std::optional<communicator> some = world.from_list(list);
    ASSERT_EQ(some.has_value(), rank == 0 || rank == 3);
    if (some) {
      EXPECT_EQ(some->rank(), rank == 3 ? 0 : 1);
      communicator moved = std::move(*some);
      EXPECT_EQ(moved.allgather(rank), (std::vector{3, 0}));
    }
  });
}

TEST(Hpp, ShrinkAndQuery) {
  on_ranks(3, [](communicator& world) {
    communicator twin = world.dup();
    communicator again = twin.shrink();
    EXPECT_EQ(again.allreduce(1, op::sum), 3);
    EXPECT_TRUE(again.query(compare::equal, 0));
    again.barrier();
    again.publish(static_cast<std::uint64_t>(again.rank()) + 1);
    again.barrier();
    EXPECT_TRUE(again.query(compare::greater, 0));
    EXPECT_FALSE(again.query(compare::less_equal, 2));
    EXPECT_EQ(again.state_of(2).state, unisono::presence::present);
    EXPECT_EQ(again.state_of(2).why, "");
    again.barrier();
  });
}

template <class T>
concept broadcasts = requires(communicator& world, T&& value) {
  world.broadcast(std::forward<T>(value));
};
template <class T>
concept gathers = requires(communicator& world, T&& value) {
  world.allgather(std::forward<T>(value));
};
static_assert(broadcasts<int> && broadcasts<int (&)[3]> && broadcasts<std::vector<int>&>);
static_assert(gathers<int> && !gathers<bool>, "a std::vector<bool> is no buffer");

TEST(Hpp, NoAddressIsSent) {
  static_assert(!broadcasts<const char*> && !broadcasts<int*> && !broadcasts<std::nullptr_t>);
  static_assert(!broadcasts<int communicator::*> && !broadcasts<std::vector<int*>&>);
  static_assert(!broadcasts<const char(&)[4]> && !gathers<const char*>);
  on_ranks(2, [](communicator& world) {
    int numbers[] = {world.rank() + 1, world.rank() + 2, world.rank() + 3};
    world.broadcast(numbers, 1);
    EXPECT_EQ(std::vector(numbers, numbers + 3), (std::vector{2, 3, 4}));
  });
}

TEST(Hpp, LengthsThatDoNotFitAreAnErrorOnEveryRank) {
  on_ranks(2, [](communicator& world) {
    communicator twin = world.dup();
    const std::array<int, 2> input{};
    std::vector<int> output(world.rank() == 0 ? 3 : 4);
    const auto gather = [&] { twin.allgather(input, output); };
    EXPECT_EQ(code_of(gather),
              world.rank() == 0 ? UNISONO_ERROR_ARGUMENT : UNISONO_ERROR_PEER_ARGUMENT);
    const std::string text = unisono_last_error();
    EXPECT_NE(text.find("the output of an allgather holds 3 elements"), std::string::npos) << text;
  });
}

TEST(Hpp, TheMessageNamesBothLengths) {
  on_ranks(1, [](communicator& world) {
    communicator twin = world.dup();
    const std::array<int, 2> input{};
    std::array<int, 3> output{};
    try {
      twin.allreduce(input, output, op::sum);
      ADD_FAILURE() << "no error";
    } catch (const unisono::error& failure) {
      EXPECT_EQ(failure.code(), UNISONO_ERROR_ARGUMENT);
      EXPECT_STREQ(failure.name(), "argument");
      EXPECT_STREQ(failure.what(), "the output of a reduction holds 3 elements, but has to hold 2");
    }
  });
}

TEST(Hpp, ErrorsOfTheLibraryAreThrown) {
  on_ranks(2, [](communicator& world) {
    communicator twin = world.dup();
    int value = 1;
    EXPECT_EQ(code_of([&] { twin.broadcast(std::span(&value, 1), 2); }), UNISONO_ERROR_ARGUMENT);
    EXPECT_EQ(code_of([&] { world.allreduce(1.0, op::bitwise_and); }), UNISONO_ERROR_TYPE);
  });
}

TEST(Hpp, FailedRankIsTheCause) {
  on_ranks(2, [](communicator& world) {
    communicator twin = world.dup();
    EXPECT_EQ(twin.failed_rank(), std::nullopt);
    int value = 1;
    const int root = world.rank() == 1 ? 7 : 0;
    const int code = code_of([&] { twin.broadcast(std::span(&value, 1), root); });
    EXPECT_TRUE(code != UNISONO_OK || world.rank() == 0) << "only the root may be done before";
    world.barrier();
    EXPECT_NE(code_of([&] { twin.barrier(); }), UNISONO_OK);
    EXPECT_EQ(twin.failed_rank(), 1);
    EXPECT_EQ(world.hosts(), 1);
  });
}

TEST(Hpp, SharedBuffersAreRangesThatEndOnce) {
  std::optional<unisono::shared_buffer<double>> kept;
  on_ranks(1, [&](communicator& world) {
    EXPECT_EQ(code_of([&] { world.allocate<double>(static_cast<std::size_t>(-1) / 4); }),
              UNISONO_ERROR_RESOURCES);
    auto input = world.allocate<double>(3);
    ASSERT_EQ(std::vector(input.begin(), input.end()), (std::vector<double>{0, 0, 0}));
    input[1] = 2.5;
    unisono::shared_buffer<double> output = world.allocate<double>(3);
    world.allreduce(input, output, op::sum);
    EXPECT_EQ(std::vector(output.begin(), output.end()), (std::vector<double>{0, 2.5, 0}));
    kept = std::move(output);
    EXPECT_EQ(output.size(), 0U);  // NOLINT: moved from
    output = std::move(input);
    EXPECT_EQ(output[1], 2.5);
  });
  EXPECT_EQ((*kept)[1], 2.5) << "it outlives the job";
}

TEST(Hpp, InterruptsEndWaits) {
  on_ranks(2, [](communicator& world) {
    communicator twin = world.dup();
    if (world.rank() == 0) {
      int asked = 0;
      twin.set_interrupt([](void* user) { return ++*static_cast<int*>(user); }, &asked);
      EXPECT_EQ(code_of([&] { twin.barrier(); }), UNISONO_ERROR_CANCELLED);
      EXPECT_GE(asked, 1);
    }
    world.barrier();
    // Rank 1 may have all that the interrupted operation takes, but not the next one.
    int code = UNISONO_OK;
    for (int i = 0; i < 2 && code == UNISONO_OK; ++i) code = code_of([&] { twin.barrier(); });
    EXPECT_EQ(code, UNISONO_ERROR_CANCELLED);
  });
}

TEST(Hpp, BadJobsThrow) {
  EXPECT_EQ(code_of([] { unisono::threads none(0); }), UNISONO_ERROR_ARGUMENT);
}

}  // namespace

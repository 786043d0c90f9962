// SPDX-License-Identifier: BSD-3-Clause
#include "collectives.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace unisono::python {

namespace nb = nanobind;

namespace {

using Use = Array::Use;
using Kind = BadArgument::Kind;

PyObject* in_place_object = nullptr;  // of the module, which outlives all calls

bool is_in_place(handle object) { return object.ptr() == in_place_object; }

std::string text(std::int64_t number) { return std::to_string(number); }

void take_input(Call& call, handle object) { call.send.take(object, Use::input, "send"); }
void take_output(Call& call, handle object) { call.receive.take(object, Use::output, "recv"); }

void require(handle object, const char* name, const char* why) {
  if (object.is_none()) throw BadArgument(std::string(name) + " is None; " + why);
}

// An array of the library that `like` comes from.
nb::object make_like(handle like, const std::vector<std::int64_t>& shape) {
  nb::list extents;
  for (const std::int64_t extent : shape) extents.append(extent);
  return arrays_module().attr("empty")(like, nb::tuple(extents));
}

// The type of what is moved or reduced. Opaque elements are moved as bytes, so counts grow.
std::int64_t use_type(Call& call, const Array& array) {
  call.type = array.element().type;
  return array.element().is_opaque ? array.item_bytes() : 1;
}

void same_type(const Array& send, const Array& receive) {
  const bool fits =
      send.element() == receive.element() && send.item_bytes() == receive.item_bytes();
  if (fits) [[likely]]
    return;
  throw BadArgument("send has " + send.type_name() + ", and recv has " + receive.type_name(),
                    Kind::type);
}

void holds(const Array& array, std::int64_t count, const char* why) {
  if (array.count() == count) [[likely]]
    return;
  throw BadArgument(std::string(array.name()) + " has " + text(array.count()) + " elements, not " +
                    text(count) + " (" + why + ")");
}

// The elements of one rank.
std::int64_t block_of(const Call& call, const Array& array) {
  const std::int64_t block = array.count() / call.comm.size();
  if (block * call.comm.size() != array.count()) {
    throw BadArgument(std::string(array.name()) + " has " + text(array.count()) +
                      " elements, which is no multiple of the " + text(call.comm.size()) +
                      " ranks");
  }
  return block;
}

std::vector<std::int64_t> shape_of_all(const Call& call, const Array& block) {
  std::vector<std::int64_t> shape = block.shape();
  shape.insert(shape.begin(), call.comm.size());
  return shape;
}

// The shape of one rank's block in an array of all ranks' blocks.
std::vector<std::int64_t> shape_of_block(const Call& call, const Array& all) {
  std::vector<std::int64_t> shape = all.shape();
  const std::int64_t size = call.comm.size();
  if (!shape.empty() && shape.front() == size) {
    shape.erase(shape.begin());
  } else if (!shape.empty() && shape.front() % size == 0) {
    shape.front() /= size;
  } else {
    shape = {block_of(call, all)};
  }
  return shape;
}

bool is_root(const Call& call) { return call.comm.rank() == call.root; }

// input and output for a send and a recv of one length; recv may be send.
void use_same_length(Call& call, handle send, handle receive, const char* why) {
  if (is_in_place(send) || (send.is(receive) && !send.is_none())) {
    require(receive, "recv", "it holds the input of a call in place");
    take_output(call, receive);
    call.input = UNISONO_IN_PLACE;
  } else {
    take_input(call, send);
    call.result = receive.is_none() ? make_like(send, call.send.shape()) : nb::borrow(receive);
    take_output(call, call.result);
    same_type(call.send, call.receive);
    holds(call.receive, call.send.count(), why);
    const bool is_same = call.send.data() == call.receive.data() && call.send.count() > 0;
    call.input = is_same ? UNISONO_IN_PLACE : call.send.data();
  }
  if (!call.result.is_valid()) call.result = nb::borrow(receive);
  call.output = call.receive.data();
  call.count = call.receive.count() * use_type(call, call.receive);
}

// For a rank that gives elements and gets none.
void use_input_only(Call& call, handle send) {
  if (is_in_place(send)) throw BadArgument("only the root may pass IN_PLACE");
  take_input(call, send);
  call.input = call.send.data();
  call.count = call.send.count() * use_type(call, call.send);
  call.result = nb::none();
}

std::vector<std::int64_t> numbers(const Call& call, handle list, const char* name) {
  std::vector<std::int64_t> all;
  try {
    for (const handle number : list) all.push_back(whole<std::int64_t>(number, "an entry"));
  } catch (const nb::python_error&) {
    throw BadArgument(std::string(name) + " is not a sequence of integers", Kind::type);
  } catch (const BadArgument& why) {
    throw BadArgument(std::string(name) + ": " + why.what(), why.kind());
  }
  if (std::ssize(all) != call.comm.size()) {
    throw BadArgument(std::string(name) + " has " + text(std::ssize(all)) + " entries for " +
                      text(call.comm.size()) + " ranks");
  }
  return all;
}

// Counts and displacements within an array of `count` elements. The library checks the rest.
Blocks blocks_in(const Call& call, std::vector<std::int64_t> counts, handle displacements,
                 std::int64_t count, const char* name) {
  Blocks blocks;
  blocks.counts = std::move(counts);
  if (!displacements.is_none()) {
    blocks.displacements = numbers(call, displacements, "displacements");
  }
  std::int64_t next = 0;
  for (std::size_t r = 0; r < blocks.counts.size(); ++r) {
    const std::int64_t length = blocks.counts[r];
    const std::int64_t place = blocks.displacements.empty() ? next : blocks.displacements[r];
    // A block of no elements has no place.
    const bool is_inside =
        length == 0 || (length > 0 && place >= 0 && length <= count && place <= count - length);
    if (!is_inside) {
      throw BadArgument("block " + text(static_cast<std::int64_t>(r)) + " of " + name + " (" +
                        text(length) + " elements from " + text(place) + ") is not within its " +
                        text(count) + " elements");
    }
    next = place + length;
  }
  return blocks;
}

// Opaque elements are moved as bytes.
void scale(Blocks& blocks, std::int64_t factor) {
  if (factor == 1) return;
  for (std::int64_t& count : blocks.counts) count *= factor;
  for (std::int64_t& displacement : blocks.displacements) displacement *= factor;
}

// The length of an array that holds all blocks.
std::int64_t sum(const std::vector<std::int64_t>& counts) {
  const auto negative = std::ranges::find_if(counts, [](std::int64_t each) { return each < 0; });
  if (negative != counts.end()) {
    throw BadArgument("counts: entry " + text(negative - counts.begin()) + " is " +
                      text(*negative) + ", and must not be negative");
  }
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

void use_op(Call& call, handle op) { call.op = find_operator(op, call.receive.element()); }

std::int64_t own_count(const Call& call, const Blocks& blocks) {
  return blocks.counts[static_cast<std::size_t>(call.comm.rank())];
}

// The send of a rank whose block has `count` elements, where all of them receive into `receive`.
void use_own_block(Call& call, handle send, std::int64_t count) {
  if (is_in_place(send)) {
    call.input = UNISONO_IN_PLACE;
    return;
  }
  take_input(call, send);
  holds(call.send, count, "its count");
  call.input = call.send.data();
}

}  // namespace

handle in_place() { return in_place_object; }
void set_in_place(handle object) { in_place_object = object.ptr(); }

void prepare_barrier(Call& call) {
  call.collective = Collective::barrier;
  call.result = nb::none();
}

void prepare_broadcast(Call& call, handle buffer, Whole root) {
  call.collective = Collective::broadcast;
  call.root = root.value("root");
  if (is_root(call)) {
    call.send.take(buffer, Use::input, "buffer");
    call.output = call.send.data();
    call.count = call.send.count() * use_type(call, call.send);
    call.result = nb::borrow(buffer);
    return;
  }
  call.result = nb::borrow(buffer);
  if (is_number(buffer)) {
    call.send.stands_for(buffer);
    call.result = arrays_module().attr("of_number")(buffer);
  }
  call.receive.take(call.result, Use::output, "buffer");
  call.output = call.receive.data();
  call.count = call.receive.count() * use_type(call, call.receive);
}

void prepare_reduce(Call& call, handle send, handle receive, handle op, Whole root) {
  call.collective = Collective::reduce;
  call.root = root.value("root");
  if (is_root(call)) {
    use_same_length(call, send, receive, "as many as send");
    use_op(call, op);
  } else {
    use_input_only(call, send);
    call.op = find_operator(op, call.send.element());
  }
}

void prepare_allreduce(Call& call, handle send, handle receive, handle op) {
  call.collective = Collective::allreduce;
  use_same_length(call, send, receive, "as many as send");
  use_op(call, op);
}

void prepare_scan(Call& call, handle send, handle receive, handle op) {
  prepare_allreduce(call, send, receive, op);
  call.collective = Collective::scan;
}

void prepare_exscan(Call& call, handle send, handle receive, handle op) {
  prepare_allreduce(call, send, receive, op);
  call.collective = Collective::exscan;
  if (receive.is_none() && call.comm.rank() == 0) call.result = nb::none();
}

void prepare_allgather(Call& call, handle send, handle receive) {
  call.collective = Collective::allgather;
  if (is_in_place(send)) {
    require(receive, "recv", "it holds the input of a call in place");
    take_output(call, receive);
    call.input = UNISONO_IN_PLACE;
    call.result = nb::borrow(receive);
    call.count = block_of(call, call.receive);
  } else {
    take_input(call, send);
    call.result =
        receive.is_none() ? make_like(send, shape_of_all(call, call.send)) : nb::borrow(receive);
    take_output(call, call.result);
    same_type(call.send, call.receive);
    call.count = call.send.count();
    holds(call.receive, call.count * call.comm.size(), "send's for each rank");
    const char* const own =
        static_cast<const char*>(call.receive.data()) + call.comm.rank() * call.send.bytes();
    const bool is_own = call.send.data() == own && call.count > 0;
    call.input = is_own ? UNISONO_IN_PLACE : call.send.data();
  }
  call.output = call.receive.data();
  call.count *= use_type(call, call.receive);
}

void prepare_gather(Call& call, handle send, handle receive, Whole root) {
  call.root = root.value("root");
  if (is_root(call)) {
    prepare_allgather(call, send, receive);
  } else {
    use_input_only(call, send);
  }
  call.collective = Collective::gather;
}

void prepare_scatter(Call& call, handle send, handle receive, Whole root) {
  call.collective = Collective::scatter;
  call.root = root.value("root");
  if (!is_root(call)) {
    if (is_in_place(receive)) throw BadArgument("only the root may pass IN_PLACE");
    require(receive, "recv", "only the root knows the length of its block");
    call.result = nb::borrow(receive);
    take_output(call, receive);
    call.output = call.receive.data();
    call.count = call.receive.count() * use_type(call, call.receive);
    return;
  }
  const bool stays = is_in_place(receive);
  call.send.take(send, stays ? Use::output : Use::input, "send");
  call.input = call.send.data();
  call.count = block_of(call, call.send);
  if (stays) {
    call.result = nb::none();
    call.output = UNISONO_IN_PLACE;
  } else {
    call.result =
        receive.is_none() ? make_like(send, shape_of_block(call, call.send)) : nb::borrow(receive);
    take_output(call, call.result);
    same_type(call.send, call.receive);
    holds(call.receive, call.count, "send's part of one rank");
    call.output = call.receive.data();
  }
  call.count *= use_type(call, call.send);
}

void prepare_alltoall(Call& call, handle send, handle receive) {
  call.collective = Collective::alltoall;
  use_same_length(call, send, receive, "as many as send");
  block_of(call, call.receive);
  call.count /= call.comm.size();
}

void prepare_reduce_scatter(Call& call, handle send, handle receive, handle op, handle counts) {
  const bool has_counts = !counts.is_none();
  call.collective = has_counts ? Collective::reduce_scatter : Collective::reduce_scatter_block;
  if (has_counts) call.output_blocks.counts = numbers(call, counts, "counts");
  const std::int64_t total = sum(call.output_blocks.counts);
  if (is_in_place(send)) {
    require(receive, "recv", "it holds the input of a call in place");
    take_output(call, receive);
    call.input = UNISONO_IN_PLACE;
    call.result = nb::borrow(receive);
    call.count = has_counts ? 0 : block_of(call, call.receive);
    if (has_counts) holds(call.receive, total, "the sum of counts");
  } else {
    take_input(call, send);
    if (has_counts) holds(call.send, total, "the sum of counts");
    call.count = has_counts ? own_count(call, call.output_blocks) : block_of(call, call.send);
    if (receive.is_none()) {
      using Shape = std::vector<std::int64_t>;
      call.result =
          make_like(send, has_counts ? Shape{call.count} : shape_of_block(call, call.send));
    } else {
      call.result = nb::borrow(receive);
    }
    take_output(call, call.result);
    same_type(call.send, call.receive);
    holds(call.receive, call.count, has_counts ? "its count" : "send's part of one rank");
    call.input = call.send.data();
  }
  call.output = call.receive.data();
  use_type(call, call.receive);
  use_op(call, op);
}

void prepare_allgatherv(Call& call, handle send, handle receive, handle counts,
                        handle displacements) {
  call.collective = Collective::allgatherv;
  std::vector<std::int64_t> lengths = numbers(call, counts, "counts");
  if (receive.is_none()) {
    if (!displacements.is_none()) throw BadArgument("displacements need a recv");
    if (is_in_place(send)) require(receive, "recv", "it holds the input of a call in place");
    call.result = make_like(send, {sum(lengths)});
  } else {
    call.result = nb::borrow(receive);
  }
  take_output(call, call.result);
  call.output_blocks =
      blocks_in(call, std::move(lengths), displacements, call.receive.count(), "recv");
  use_own_block(call, send, own_count(call, call.output_blocks));
  if (!is_in_place(send)) same_type(call.send, call.receive);
  call.output = call.receive.data();
  const std::int64_t factor = use_type(call, call.receive);
  scale(call.output_blocks, factor);
  call.count = own_count(call, call.output_blocks);
}

void prepare_many_to_many(Call& call, handle send, handle receive, handle counts, handle receives,
                          handle displacements) {
  call.collective = Collective::many_to_many;
  if (!receives.is_none()) {
    for (const std::int64_t flag : numbers(call, receives, "receives")) {
      call.receives.push_back(flag != 0 ? 1 : 0);
    }
  }
  const auto self = static_cast<std::size_t>(call.comm.rank());
  const bool is_receiver = call.receives.empty() || call.receives[self] == 1;
  if (is_receiver) {
    prepare_allgatherv(call, send, receive, counts, displacements);
  } else {
    call.output_blocks.counts = numbers(call, counts, "counts");
    use_input_only(call, send);
    holds(call.send, own_count(call, call.output_blocks), "its count");
    scale(call.output_blocks, use_type(call, call.send));
  }
  call.collective = Collective::many_to_many;
}

void prepare_gatherv(Call& call, handle send, handle receive, handle counts, handle displacements,
                     Whole root) {
  call.root = root.value("root");
  if (is_root(call)) {
    require(counts, "counts", "the root has to know them");
    prepare_allgatherv(call, send, receive, counts, displacements);
  } else {
    use_input_only(call, send);
  }
  call.collective = Collective::gatherv;
}

void prepare_scatterv(Call& call, handle send, handle receive, handle counts, handle displacements,
                      Whole root) {
  call.collective = Collective::scatterv;
  call.root = root.value("root");
  if (!is_root(call)) {
    prepare_scatter(call, send, receive, root);
    call.collective = Collective::scatterv;
    return;
  }
  require(counts, "counts", "the root has to know them");
  const bool stays = is_in_place(receive);
  call.send.take(send, stays ? Use::output : Use::input, "send");
  call.input = call.send.data();
  call.input_blocks =
      blocks_in(call, numbers(call, counts, "counts"), displacements, call.send.count(), "send");
  const std::int64_t own = own_count(call, call.input_blocks);
  if (stays) {
    call.result = nb::none();
    call.output = UNISONO_IN_PLACE;
  } else {
    call.result = receive.is_none() ? make_like(send, {own}) : nb::borrow(receive);
    take_output(call, call.result);
    same_type(call.send, call.receive);
    holds(call.receive, own, "its count");
    call.output = call.receive.data();
  }
  scale(call.input_blocks, use_type(call, call.send));
  call.count = own_count(call, call.input_blocks);
}

void prepare_alltoallv(Call& call, handle send, handle send_counts, handle receive,
                       handle receive_counts, handle send_displacements,
                       handle receive_displacements) {
  call.collective = Collective::alltoallv;
  if (receive.is_none() && !receive_displacements.is_none()) {
    throw BadArgument("recv_displacements need a recv");
  }
  if (is_in_place(send)) require(receive, "recv", "it holds the input of a call in place");
  std::vector<std::int64_t> lengths = numbers(call, receive_counts, "counts");
  call.result = receive.is_none() ? make_like(send, {sum(lengths)}) : nb::borrow(receive);
  take_output(call, call.result);
  call.output_blocks =
      blocks_in(call, std::move(lengths), receive_displacements, call.receive.count(), "recv");
  if (is_in_place(send)) {
    call.input = UNISONO_IN_PLACE;
  } else {
    take_input(call, send);
    same_type(call.send, call.receive);
    call.input = call.send.data();
    call.input_blocks = blocks_in(call, numbers(call, send_counts, "counts"), send_displacements,
                                  call.send.count(), "send");
  }
  call.output = call.receive.data();
  const std::int64_t factor = use_type(call, call.receive);
  scale(call.input_blocks, factor);
  scale(call.output_blocks, factor);
}

namespace {

// The blocks of an alltoallw: counts of each block's type, displacements in bytes.
Blocks typed_blocks(const Call& call, const Array& array, handle counts, handle displacements,
                    handle types) {
  Blocks blocks;
  blocks.counts = numbers(call, counts, "counts");
  blocks.displacements = numbers(call, displacements, "displacements");
  const nb::object number_of = arrays_module().attr("type_number");
  for (const handle type : types) {
    try {
      blocks.types.push_back(nb::cast<unisono_type_t>(number_of(type)));
    } catch (const nb::python_error& error) {
      throw BadArgument("types: " + text_of(error), Kind::type);
    }
  }
  if (blocks.types.size() != blocks.counts.size()) {
    throw BadArgument("types has " + text(std::ssize(blocks.types)) + " entries for " +
                      text(call.comm.size()) + " ranks");
  }
  for (std::size_t r = 0; r < blocks.counts.size(); ++r) {
    const auto size = static_cast<std::int64_t>(unisono_type_size(blocks.types[r]));
    const std::int64_t room = array.bytes() - blocks.displacements[r];
    const bool is_inside =
        blocks.counts[r] == 0 || (blocks.counts[r] > 0 && blocks.displacements[r] >= 0 &&
                                  room >= 0 && blocks.counts[r] <= room / size);
    if (!is_inside) {
      throw BadArgument("block " + text(static_cast<std::int64_t>(r)) + " of " + array.name() +
                        " is not within its " + text(array.bytes()) + " bytes");
    }
  }
  return blocks;
}

}  // namespace

void prepare_alltoallw(Call& call, handle send, handle send_counts, handle send_displacements,
                       handle send_types, handle receive, handle receive_counts,
                       handle receive_displacements, handle receive_types) {
  call.collective = Collective::alltoallw;
  call.result = nb::borrow(receive);
  take_output(call, receive);
  call.output_blocks =
      typed_blocks(call, call.receive, receive_counts, receive_displacements, receive_types);
  call.output = call.receive.data();
  if (is_in_place(send)) {
    call.input = UNISONO_IN_PLACE;
    return;
  }
  take_input(call, send);
  call.input_blocks = typed_blocks(call, call.send, send_counts, send_displacements, send_types);
  call.input = call.send.data();
}

}  // namespace unisono::python

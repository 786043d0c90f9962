# SPDX-License-Identifier: BSD-3-Clause
"""The back end in Python, on the package unisono: for a torch that the extension module was not
built for. Its calls cost more. torch does not ask a back end in Python for messages from any rank,
for monitored barriers and for an allocator of pools. Otherwise both back ends have the same calls.

A blocking call runs on the calling thread if no operation is queued. An asynchronous call runs on a
thread of the group, in the order of calls."""

import datetime
import sys
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Optional

import torch
import torch.distributed as dist
import unisono

from . import _tensors
from ._calls import BadArgument, Calls, Work, note_end_of_interpreter, stay_if_interpreter_ends
from ._exchange import StoreConnection, departure_key, open_session, without_prefixes
from ._memory import Blocks
from ._messages import Messages

_c10d = torch._C._distributed_c10d
_SHRINK_ABORTS = 1  # torch.distributed.SHRINK_ABORT
_MOST_DIMENSIONS = 24  # of a sparse tensor

# Seconds at most until cancelled operations have returned.
_CANCELLING = 5.0
# Seconds at most until other threads come here on their way from or to torch. One that is in a call
# of another back end does not come.
_COMING = 0.5
_living: "weakref.WeakSet[PythonBackend]" = weakref.WeakSet()


def _wait_while(condition: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while condition() and time.monotonic() < limit:
        time.sleep(0.001)


def _wait_until_idle(groups: list["PythonBackend"], seconds: float) -> None:
    _wait_while(lambda: any(group.count_under_way() for group in groups), seconds)


def _has_thread_in_torch() -> bool:
    """Whether another thread is in torch's functions or below them. There it must not take the GIL
    of an interpreter that has ended, and does not stay yet."""
    return any(_is_in_torch(frame) for thread, frame in sys._current_frames().items()
               if thread != threading.get_ident())


def _is_in_torch(frame: Optional[FrameType]) -> bool:
    if frame is not None and frame.f_code is stay_if_interpreter_ends.__code__:
        return False
    while frame is not None:
        # torch's Work calls that of this package from C++.
        if frame.f_code is Work.wait.__code__:
            return True
        if frame.f_globals.get("__name__") == dist.distributed_c10d.__name__:
            return True
        frame = frame.f_back
    return False


def end_living_groups(grace: datetime.timedelta) -> list[str]:
    """As that of the compiled back end."""
    note_end_of_interpreter()
    groups = [group for group in _living if group.is_own()]
    try:
        _wait_until_idle(groups, grace.total_seconds())
    except KeyboardInterrupt:
        pass  # it ends the grace
    for group in groups:
        group.stop_accepting()
    lines = []
    for group in groups:
        if (count := group.count_under_way()) > 0:
            operations = "1 operation is" if count == 1 else f"{count} operations are"
            lines.append(f"unisono: rank {group.rank()} of {group.size()} ends without "
                         f"destroy_process_group() while {operations} under way; cancelled for "
                         "all ranks")
            group.abort()
    # Other threads in a call must be back from it before the interpreter is gone.
    _wait_until_idle(groups, _CANCELLING)
    for group in groups:
        group.shutdown()
    if groups:
        _wait_while(_has_thread_in_torch, _COMING)
    return lines


class PythonBackend(_c10d.Backend):
    """As torch.distributed calls it."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        connection = StoreConnection(without_prefixes(store),
                                     open_session(store, rank, size, timeout))
        self._store = connection
        self._calls = Calls(lambda: connection.own, rank, size, timeout)
        self._calls.open()
        self._messages = Messages(self._store, self._calls, rank, size, timeout)
        self._blocks = Blocks()
        self._group = (rank, size)
        _living.add(self)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "unisono"

    name = getBackendName

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._calls.timeout = self._messages.timeout = timeout

    def abort(self) -> None:
        self._calls.abort()
        self._messages.abort()

    def shutdown(self) -> None:
        # Before the wait for messages that were sent: their receivers may leave now, too.
        if self.is_own():
            try:
                self._store.own.set(departure_key(self._group[0]), "1")
            except Exception:  # the store has ended, so nobody can read it
                pass
        self._calls.finish_queued()
        self._messages.finish()
        self._store.release()
        self._calls.close()  # the messages ask it for lost ranks

    def is_own(self) -> bool:
        return self._calls.is_own()

    def stop_accepting(self) -> None:
        """Later operations fail; those under way go on."""
        self._calls.stop_accepting()
        self._messages.stop_accepting()

    def count_under_way(self) -> int:
        """Operations, but for receives."""
        return self._calls.pending + self._messages.count_under_way()

    def __del__(self) -> None:
        if hasattr(self, "_messages"):
            self.abort()
            self.shutdown()

    # torch asks for each of them; one that is missing here would ask itself for ever.
    supports_splitting = property(lambda _: True)
    supports_shrinking = property(lambda _: True)
    supports_coalescing = property(lambda _: False)
    supports_reconfigure = property(lambda _: False)
    supports_window = property(lambda _: False)
    _supports_time_estimate = property(lambda _: False)

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        return torch.device(device).type == "cpu"

    def allocate_tensor(self, size: int, *, dtype: torch.dtype,
                        device: torch.device) -> torch.Tensor:
        """In memory that the other ranks of the host can read, where there is some."""
        if not self.supports_tensor_alloc(device):
            raise ValueError("unisono: the back end allocates tensors in host memory, not on "
                             f"{device}")
        if size < 0:
            raise ValueError(f"unisono: a tensor of {size} elements")
        return self._blocks.tensor(self._calls.comm, size, dtype)

    @property
    def options(self) -> Any:
        return _c10d.Backend.Options("unisono", self._calls.timeout)

    def split(self, store: Any, ranks: list[int], options: Any) -> Any:
        if self._group[0] not in ranks:
            return None
        return PythonBackend(store, ranks.index(self._group[0]), len(ranks), options._timeout)

    def shrink(self, excluded: list[int], flags: int = 0, options: Any = None) -> Any:
        """Over the store, so it needs nothing of a group that has failed."""
        if flags == _SHRINK_ABORTS:
            self.abort()
        rank, size = self._group
        kept = [each for each in range(size) if each not in excluded]
        if rank not in kept:
            raise ValueError(f"unisono: shrink: rank {rank} is one of the excluded ranks")
        name = "-".join(["unisono-without", *map(str, excluded)])
        timeout = options._timeout if options is not None else self._calls.timeout
        return PythonBackend(_c10d.PrefixStore(name, self._store.own), kept.index(rank), len(kept),
                             timeout)

    def send(self, tensors: list[torch.Tensor], target: int, tag: int) -> Any:
        return self._messages.send(tensors, target, tag)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int) -> Any:
        return self._messages.receive(tensors, source, tag)

    def barrier(self, options: Any) -> Any:
        return self._calls.submit("barrier", options, [], lambda: self._calls.comm.barrier())

    def broadcast(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            _tensors.first_of(tensors)
            if not 0 <= options.rootTensor < len(tensors):
                raise BadArgument(ValueError, f"tensor {options.rootTensor} of the root is not one "
                                  f"of the {len(tensors)} tensors")
            tensor = tensors[options.rootTensor]
            _tensors.require_equal(tensors, tensor)
            is_root = self._group[0] == options.rootRank
            flat = _tensors.flat(tensor) if is_root else _tensors.result(tensor)
            if len(tensors) > 1:
                for other in tensors:
                    _tensors.result(other)  # all can take a result
            self._calls.comm.broadcast(_tensors.moved(flat), options.rootRank)
            if not is_root:
                _tensors.write(tensor, flat)
            _tensors.copy_to_all(tensor, tensors)
        return self._calls.submit("broadcast", options, tensors, run)

    def _reduced(self, tensor: torch.Tensor, op: Any) -> None:
        word, flat = _tensors.operator(op, tensor), _tensors.prepared(op, _tensors.result(tensor))
        self._calls.comm.allreduce(unisono.IN_PLACE, flat, word)
        _tensors.finish(op, flat, self._group[1])
        _tensors.write(tensor, flat)

    def _reduced_together(self, tensors: list[torch.Tensor], op: Any) -> None:
        """All tensors of all ranks, each of which takes the result."""
        first = _tensors.first_of(tensors)
        _tensors.require_equal(tensors, first)
        word = _tensors.operator(op, first)
        combined = _tensors.prepared(op, _tensors.result(first)).clone()
        for tensor in tensors[1:]:
            summand = _tensors.prepared(op, _tensors.result(tensor))
            _tensors.combine(word, combined, summand)
        self._calls.comm.allreduce(unisono.IN_PLACE, combined, word)
        _tensors.finish(op, combined, self._group[1] * len(tensors))
        _tensors.copy_to_all(combined, tensors)

    def allreduce(self, tensors: list[torch.Tensor], options: Any) -> Any:
        if tensors and tensors[0].layout == torch.sparse_coo:
            return self.allreduce_sparse(tensors, options)
        run = self._reduced if len(tensors) == 1 else self._reduced_together
        what: Any = tensors[0] if len(tensors) == 1 else tensors
        return self._calls.submit("all_reduce", options, tensors,
                                  lambda: run(what, options.reduceOp))

    @staticmethod
    def _own_sum(tensors: list[torch.Tensor]) -> torch.Tensor:
        """The sum of the sparse tensors of this rank."""
        first = _tensors.first_of(tensors)
        for tensor in tensors:
            if tensor.layout != torch.sparse_coo or tensor.device.type != "cpu":
                raise BadArgument(ValueError, "a tensor is not sparse in coordinate format, in "
                                  "host memory")
            if tensor.dim() > _MOST_DIMENSIONS:
                raise BadArgument(ValueError, f"a sparse tensor has {tensor.dim()} dimensions; at "
                                  f"most {_MOST_DIMENSIONS} are possible")
            if (tensor.shape, tensor.sparse_dim(), tensor.dtype) != (
                    first.shape, first.sparse_dim(), first.dtype):
                raise BadArgument(ValueError, "the sparse tensors of this rank have different "
                                  "shapes or types")
        total = first.detach().coalesce()
        for tensor in tensors[1:]:
            total = (total + tensor.detach().coalesce()).coalesce()
        return total

    def _reduced_sparse(self, tensors: list[torch.Tensor], op: Any) -> None:
        if op != dist.ReduceOp.SUM:
            raise BadArgument(ValueError, "only SUM takes sparse tensors")
        own = self._own_sum(tensors)
        sizes = [*own.shape, *[0] * (_MOST_DIMENSIONS - own.dim())]
        shape = torch.tensor([own._nnz(), own.sparse_dim(), own.dim(),
                              zlib.crc32(str(own.dtype).encode()), *sizes])
        shapes = torch.empty(self._group[1], len(shape), dtype=torch.int64)
        self._calls.comm.allgather(shape, shapes.view(-1))
        for rank, other in enumerate(shapes):
            if not torch.equal(other[1:], shape[1:]):
                raise BadArgument(ValueError, f"rank {rank} has a sparse tensor of another shape "
                                  "or type")
        counts = shapes[:, 0].tolist()
        indices = self._rows_of_all(own.indices().t().contiguous(), counts)
        values = self._rows_of_all(own.values().contiguous(), counts)
        total = torch.sparse_coo_tensor(indices.t(), values, own.shape).coalesce()
        with torch.no_grad():  # detach() would give the sparse tensor another content
            for tensor in tensors:
                tensor.copy_(total)

    def _rows_of_all(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        length = rows[:1].numel() if len(rows) > 0 else rows.new_empty(1, *rows.shape[1:]).numel()
        every = torch.empty(sum(counts), *rows.shape[1:], dtype=rows.dtype)
        own = _tensors.moved(rows.view(-1))
        scale = rows.element_size() // own.element_size()
        self._calls.comm.allgatherv(own, _tensors.moved(every.view(-1)),
                                    counts=[count * length * scale for count in counts])
        return every

    def allreduce_sparse(self, tensors: list[torch.Tensor], options: Any) -> Any:
        return self._calls.submit("all_reduce_sparse", options, tensors,
                                  lambda: self._reduced_sparse(tensors, options.reduceOp))

    def _averaged(self, tensor: torch.Tensor) -> None:
        if not tensor.is_floating_point():
            raise BadArgument(TypeError, "gradients are not real numbers")
        size, count = self._group[1], tensor.numel()
        part = (count + size - 1) // size
        given = torch.zeros(part * size, dtype=torch.bfloat16)
        given[:count].copy_(tensor.detach().reshape(-1))
        taken = torch.empty_like(given)
        self._calls.comm.alltoall(given, taken)
        own = taken.view(size, part).sum(0, dtype=torch.float32).div_(size).to(torch.bfloat16)
        self._calls.comm.allgather(own, given)
        tensor.detach().copy_(given[:count].view(tensor.shape))

    def average_as_bfloat16(self, tensor: torch.Tensor) -> Any:
        """For unisono.torch.hooks: not of torch, and always asynchronous."""
        options = _c10d.AllreduceOptions()
        options.asyncOp = True
        return self._calls.submit("average_as_bfloat16", options, [tensor],
                                  lambda: self._averaged(tensor))

    def allreduce_coalesced(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            _tensors.first_of(tensors)
            are_apart = not _tensors.share_memory(tensors)  # a tensor may be in the list twice
            each = tensors if are_apart else [tensor.clone() for tensor in tensors]
            for tensor in each:
                self._reduced(tensor, options.reduceOp)
            for tensor, reduced in zip(tensors, each):
                _tensors.copy_to_all(reduced, [tensor])
        return self._calls.submit("all_reduce_coalesced", options, tensors, run)

    def reduce(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            tensor = _tensors.only(tensors)
            op, root = options.reduceOp, options.rootRank
            word, flat = _tensors.operator(op, tensor), _tensors.flat(tensor)
            if self._group[0] == root:
                self._calls.comm.reduce(unisono.IN_PLACE, flat, word, root)
                _tensors.finish(op, flat, self._group[1])
                _tensors.write(tensor, flat)
            else:
                self._calls.comm.reduce(flat, None, word, root)
        return self._calls.submit("reduce", options, tensors, run)

    def _gathered(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor) -> None:
        own = _tensors.moved(_tensors.flat(tensor))
        self._require(outputs, tensor)
        if outputs[self._group[0]].numel() != tensor.numel():
            raise BadArgument(ValueError, "the output of this rank has "
                              f"{outputs[self._group[0]].numel()} elements, not {tensor.numel()}")
        if _tensors.same_size(outputs):
            every = torch.empty(own.numel() * len(outputs), dtype=own.dtype)
            self._calls.comm.allgather(own, every)
        else:
            scale = tensor.element_size() // own.element_size()
            counts = [output.numel() * scale for output in outputs]
            every = torch.empty(sum(counts), dtype=own.dtype)
            self._calls.comm.allgatherv(own, every, counts=counts)
        self._distribute(every, outputs)

    def _require(self, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
        if len(tensors) != self._group[1]:
            raise BadArgument(ValueError, f"there are {len(tensors)} tensors for "
                               f"{self._group[1]} ranks")
        if any(tensor.dtype != like.dtype for tensor in tensors):
            raise BadArgument(TypeError, f"the tensors are not all of type {like.dtype}")

    @staticmethod
    def _distribute(every: torch.Tensor, outputs: Sequence[torch.Tensor]) -> None:
        begin = 0
        for output in outputs:
            length = output.numel() * output.element_size() // every.element_size()
            output.detach().copy_(every[begin:begin + length].view(output.dtype)
                                  .view(output.shape))
            begin += length

    def _gathered_together(self, outputs: list[list[torch.Tensor]],
                           inputs: list[torch.Tensor]) -> None:
        """Each list takes the tensors of all ranks."""
        first = _tensors.first_of(inputs)
        if len(outputs) != len(inputs):
            raise BadArgument(ValueError, f"there are {len(outputs)} lists of outputs for "
                              f"{len(inputs)} inputs")
        _tensors.require_equal(inputs, first)
        for outputs_of_list in outputs:
            _tensors.require_equal(outputs_of_list, first)
            if len(outputs_of_list) != len(inputs) * self._group[1]:
                raise BadArgument(ValueError, f"a list of outputs has {len(outputs_of_list)} "
                                  f"tensors, not {len(inputs) * self._group[1]}")
        own = torch.cat([_tensors.moved(_tensors.flat(tensor)) for tensor in inputs])
        every = torch.empty(own.numel() * self._group[1], dtype=own.dtype)
        self._calls.comm.allgather(own, every)
        for outputs_of_list in outputs:
            self._distribute(every, outputs_of_list)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                  options: Any) -> Any:
        if len(inputs) != 1:
            return self._calls.submit("all_gather", options, sum(outputs, []),
                                      lambda: self._gathered_together(outputs, inputs),
                                      len(outputs))
        every = sum(outputs, [])
        return self._calls.submit("all_gather", options, every,
                                  lambda: self._gathered(every, inputs[0]))

    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                            options: Any) -> Any:
        def run() -> None:
            _tensors.first_of(inputs)
            of_ranks = [_tensors.pairs(of_rank, inputs) for of_rank in outputs]
            for index, tensor in enumerate(inputs):
                self._gathered([pairs[index][0] for pairs in of_ranks], tensor)
        return self._calls.submit("all_gather_coalesced", options, sum(outputs, []), run,
                                  len(outputs))

    def _gathered_single(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        if output.numel() != tensor.numel() * self._group[1] or output.dtype != tensor.dtype:
            raise BadArgument(ValueError, f"the output has {output.numel()} elements of "
                               f"{output.dtype}, not those of {self._group[1]} inputs")
        flat = _tensors.result(output)
        own = _tensors.flat(tensor)
        place = flat.narrow(0, self._group[0] * own.numel(), own.numel())
        is_in_place = place.data_ptr() == own.data_ptr()
        self._calls.comm.allgather(unisono.IN_PLACE if is_in_place else _tensors.moved(own),
                                   _tensors.moved(flat))
        _tensors.write(output, flat)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> Any:
        return self._calls.submit("all_gather_single", options, [output],
                                  lambda: self._gathered_single(output, tensor))

    def all_gather_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                    options: Any) -> Any:
        def run() -> None:
            for output, tensor in _tensors.pairs(outputs, inputs):
                self._gathered_single(output, tensor)
        return self._calls.submit("all_gather_single_coalesced", options, outputs, run)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
               options: Any) -> Any:
        def run() -> None:
            tensor = _tensors.only(inputs)
            own = _tensors.moved(_tensors.flat(tensor))
            if self._group[0] != options.rootRank:
                self._calls.comm.gather(own, None, options.rootRank)
                return
            self._require(sum(outputs, []), tensor)
            _tensors.require_equal(sum(outputs, []), tensor)
            every = torch.empty(own.numel() * self._group[1], dtype=own.dtype)
            self._calls.comm.gather(own, every, options.rootRank)
            self._distribute(every, sum(outputs, []))
        return self._calls.submit("gather", options, sum(outputs, []), run)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                options: Any) -> Any:
        def run() -> None:
            output = _tensors.only(outputs)
            flat = _tensors.result(output)
            every = None
            if self._group[0] == options.rootRank:
                parts = sum(inputs, [])
                self._require(parts, output)
                every = torch.cat([_tensors.moved(_tensors.flat(part)) for part in parts])
            self._calls.comm.scatter(every, _tensors.moved(flat), options.rootRank)
            _tensors.write(output, flat)
        return self._calls.submit("scatter", options, outputs, run)

    def _scattered(self, output: torch.Tensor, parts: Sequence[torch.Tensor], op: Any) -> None:
        word, flat = _tensors.operator(op, output), _tensors.result(output)
        self._require(parts, output)
        counts = None if _tensors.same_size(parts) else [part.numel() for part in parts]
        summands = _tensors.prepared(op, torch.cat([_tensors.flat(part) for part in parts]))
        self._calls.comm.reduce_scatter(summands, flat, word, counts)
        _tensors.finish(op, flat, self._group[1])
        _tensors.write(output, flat)

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                       options: Any) -> Any:
        return self._calls.submit(
            "reduce_scatter", options, outputs,
            lambda: self._scattered(_tensors.only(outputs), sum(inputs, []), options.reduceOp))

    def _scattered_single(self, output: torch.Tensor, tensor: torch.Tensor, op: Any) -> None:
        word, flat = _tensors.operator(op, output), _tensors.result(output)
        if output.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
            flat = torch.empty_like(flat)  # the input may hold the output
        self._calls.comm.reduce_scatter(_tensors.prepared(op, _tensors.flat(tensor)), flat, word)
        _tensors.finish(op, flat, self._group[1])
        _tensors.write(output, flat)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor,
                              options: Any) -> Any:
        return self._calls.submit("reduce_scatter_single", options, [output],
                                  lambda: self._scattered_single(output, tensor, options.reduceOp))

    def reduce_scatter_single_coalesced(self, outputs: list[torch.Tensor],
                                        inputs: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            for output, tensor in _tensors.pairs(outputs, inputs):
                self._scattered_single(output, tensor, options.reduceOp)
        return self._calls.submit("reduce_scatter_single_coalesced", options, outputs, run)

    def _exchanged(self, received: torch.Tensor, sent: torch.Tensor, receive_counts: list[int],
                   send_counts: list[int]) -> None:
        if _tensors.overlap(received, sent):
            sent = sent.clone()
        scale = sent.element_size() // _tensors.moved(sent).element_size()
        self._calls.comm.alltoallv(_tensors.moved(sent), [count * scale for count in send_counts],
                                   _tensors.moved(received),
                                   [count * scale for count in receive_counts])

    def _counts(self, tensor: torch.Tensor, rows: list[int]) -> list[int]:
        size = self._group[1]
        if rows:
            length = tensor.shape[0] if tensor.dim() > 0 else 1
            if len(rows) != size or min(rows) < 0 or sum(rows) != length:
                raise BadArgument(ValueError, f"the split sizes {rows} are not {size} numbers that "
                                   f"add up to the {length} rows of a tensor")
            row = tensor.numel() // max(length, 1)
            return [count * row for count in rows]
        if tensor.dim() == 0 or tensor.shape[0] % size != 0:
            raise BadArgument(ValueError, f"a tensor of shape {tuple(tensor.shape)} has rows that "
                               f"are no multiple of the {size} ranks")
        return [tensor.numel() // size] * size

    def all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor, output_rows: list[int],
                          input_rows: list[int], options: Any) -> Any:
        def run() -> None:
            flat = _tensors.result(output)
            self._exchanged(flat, _tensors.flat(tensor), self._counts(output, output_rows),
                            self._counts(tensor, input_rows))
            _tensors.write(output, flat)
        return self._calls.submit("all_to_all_single", options, [output], run)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                 options: Any) -> Any:
        def run() -> None:
            self._require(inputs, _tensors.first_of(outputs))
            self._require(outputs, inputs[0])
            received = torch.empty(sum(each.numel() for each in outputs), dtype=outputs[0].dtype)
            self._exchanged(received, torch.cat([_tensors.flat(part) for part in inputs]),
                            [each.numel() for each in outputs], [each.numel() for each in inputs])
            self._distribute(received, outputs)
        return self._calls.submit("all_to_all", options, outputs, run)

    # The names of these calls before torch had those above.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

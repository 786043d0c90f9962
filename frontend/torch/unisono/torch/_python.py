# SPDX-License-Identifier: BSD-3-Clause
"""The back end in Python, on the package unisono: for a torch that the extension module was not
built for. It has the collectives, groups and timeouts of the compiled one. It has no messages
between two ranks, no sparse tensors, no PREMUL_SUM and no allocator, and its calls cost more.

A blocking call runs on the calling thread if no operation is queued; an asynchronous one runs on a
thread of the group, in the order of calls."""

import datetime
import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
import unisono

from ._exchange import join

_c10d = torch._C._distributed_c10d
_DAY = datetime.timedelta(days=1)
_WORDS = {"SUM": "sum", "AVG": "sum", "PRODUCT": "prod", "MIN": "min", "MAX": "max",
          "BAND": "bitwise_and", "BOR": "bitwise_or", "BXOR": "bitwise_xor"}


class _BadArgument(Exception):
    """An argument of this rank is wrong, which all ranks have to hear."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind = kind


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Its values in host memory, in one piece: the tensor's own memory where that is possible."""
    if tensor.device.type == "meta" or tensor.layout != torch.strided:
        raise _BadArgument(ValueError, f"a tensor on {tensor.device} of layout {tensor.layout} has "
                           "no dense values in host memory")
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().view(-1)


def _moved(flat: torch.Tensor) -> torch.Tensor:
    """For collectives that add nothing up: types that the library does not know as bytes."""
    return flat if _is_known(flat.dtype) else flat.view(torch.uint8)


def _is_known(dtype: torch.dtype) -> bool:
    return (dtype in (torch.bool, torch.complex64, torch.complex128)
            or not dtype.is_complex and dtype.itemsize >= (2 if dtype.is_floating_point else 1))


def _write(target: torch.Tensor, flat: torch.Tensor) -> None:
    """Back to where the values of _flat(target) come from."""
    if flat.data_ptr() != target.data_ptr() or target.device.type != "cpu":
        target.detach().copy_(flat.view(target.shape))


def _same_size(tensors: Sequence[torch.Tensor]) -> bool:
    return all(tensor.numel() == tensors[0].numel() for tensor in tensors)


def _operator(op: Any, tensor: torch.Tensor) -> str:
    name = next((word for word in _WORDS if op == getattr(dist.ReduceOp, word)), None)
    if name is None:
        raise _BadArgument(TypeError, f"{op} needs the compiled back end")
    dtype = tensor.dtype
    real = dtype.is_floating_point or dtype.is_complex
    is_wrong = (not _is_known(dtype) or name.startswith("B") and real
                or name in ("MIN", "MAX") and dtype.is_complex
                or name == "AVG" and dtype == torch.bool)
    if is_wrong:
        raise _BadArgument(TypeError, f"{name} does not take tensors of type {dtype}")
    return _WORDS[name]


def _finish(op: Any, flat: torch.Tensor, ranks: int) -> None:
    if op == dist.ReduceOp.AVG:
        is_real = flat.is_floating_point() or flat.is_complex()
        flat.div_(ranks, rounding_mode=None if is_real else "trunc")


class _Work(dist.Work):
    """One operation, complete when its thread says so."""

    def __init__(self, results: list[torch.Tensor]) -> None:
        super().__init__()
        self._results = results
        self._ended = threading.Event()
        self._error: Optional[Exception] = None
        self._source = torch.futures.Future()
        self._future = self._source.then(lambda _: self._value())
        self._process = os.getpid()

    def _value(self) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._results

    def complete(self, error: Optional[Exception]) -> None:
        self._error = error
        self._ended.set()
        self._source.set_result(None)

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        if not self._ended.is_set() and self._process != os.getpid():
            raise dist.DistBackendError("unisono: a forked child cannot wait for an operation of "
                                        "its parent")
        if not self._ended.wait(timeout.total_seconds() or None):
            raise dist.DistBackendError(f"unisono: a wait timed out after {timeout}; the operation "
                                        "goes on")
        self._value()
        return True

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def result(self) -> list[torch.Tensor]:
        return self._value()

    def get_future(self) -> Any:
        return self._future


class _Calls:
    """Runs the operations of a group on its communicator."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        self.comm = join(store, rank, size, timeout)
        self.timeout = timeout
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None
        self._pending = 0
        self._lock = threading.Lock()
        self._has_failed = False
        self._ended = ""  # how the group has ended
        self._process = os.getpid()

    def submit(self, name: str, options: Any, results: list[torch.Tensor],
               operation: Callable[[], None]) -> Optional[_Work]:
        """No work for a blocking call that has ended here; torch then waits for none."""
        if self._process != os.getpid():
            raise dist.DistBackendError(f"unisono: {name}: a forked child has no part in the group "
                                        "of its parent")
        if self._ended:
            raise dist.DistBackendError(f"unisono: {name}: the group has been {self._ended}")
        given = options.timeout
        limit = given if datetime.timedelta(0) < given < _DAY else self.timeout
        with self._lock:
            is_idle = self._pending == 0
            self._pending += 1
        if is_idle and not getattr(options, "asyncOp", False):
            try:
                self._run(name, limit, operation)
            finally:
                with self._lock:
                    self._pending -= 1
            return None
        work = _Work(results)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="unisono-torch", daemon=True)
            self._thread.start()
        self._queue.put((work, name, limit, operation))
        return work

    def _run(self, name: str, limit: datetime.timedelta, operation: Callable[[], None]) -> None:
        if self._ended:
            raise dist.DistBackendError(f"unisono: {name}: the group has been {self._ended}")
        self.comm.timeout = min(limit, _DAY).total_seconds()
        try:
            operation()
        except _BadArgument as error:
            self._refuse(f"unisono: {name}: {error}")
            raise error.kind(f"unisono: {name}: {error}") from None
        except unisono.Error as error:
            is_first, self._has_failed = not self._has_failed, True
            if is_first and isinstance(error, (unisono.ArgumentError, unisono.DatatypeError)):
                raise  # ValueError, TypeError: of the arguments of this call
            raise dist.DistBackendError(f"unisono: {name}: {self._why(error, limit)}") from error
        except Exception as error:
            self._refuse(f"unisono: {name}: {error}")
            raise

    def _why(self, error: unisono.Error, limit: datetime.timedelta) -> str:
        if self._ended:
            return f"the group has been {self._ended}"
        if isinstance(error, unisono.TimeoutError) and error.rank in (None, self.comm.rank):
            return (f"rank {self.comm.rank} timed out at its timeout of "
                    f"{round(limit.total_seconds() * 1000)} ms, and the group has ended: {error}")
        return str(error)

    def _refuse(self, why: str) -> None:
        self._has_failed = True
        try:
            self.comm.refuse(why)
        except unisono.Error:
            pass  # it has failed already

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            work, name, limit, operation = item
            error: Optional[Exception] = None
            try:
                self._run(name, limit, operation)
            except Exception as raised:
                error = raised
            del item, operation
            with self._lock:
                self._pending -= 1
            work.complete(error)
            del work

    def abort(self) -> None:
        """A call in progress ends at once, by its limit; otherwise the others are told here."""
        if self._ended or self._process != os.getpid():
            return
        self._ended = "aborted"
        try:
            self.comm.refuse("the group has been aborted")
        except unisono.StateError:
            self.comm.timeout = 1e-9
        except unisono.Error:
            pass

    def finish(self) -> None:
        """Runs what is queued, and ends the communicator."""
        if self._process != os.getpid():
            return
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self._ended = self._ended or "shut down"
        try:
            self.comm.close()
        except unisono.Error:
            pass  # of a call that nobody has waited for


class PythonBackend(_c10d.Backend):
    """As torch.distributed calls it."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        self._calls = _Calls(store, rank, size, timeout)
        self._group = (rank, size)

    def getBackendName(self) -> str:  # noqa: N802 (torch's name)
        return "unisono"

    name = getBackendName

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._calls.timeout = timeout

    def abort(self) -> None:
        self._calls.abort()

    def shutdown(self) -> None:
        self._calls.finish()

    def __del__(self) -> None:
        if hasattr(self, "_calls"):
            self._calls.abort()
            self._calls.finish()

    def barrier(self, options: Any) -> Any:
        return self._calls.submit("barrier", options, [], self._calls.comm.barrier)

    def broadcast(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            flat = _flat(tensors[0])
            self._calls.comm.broadcast(_moved(flat), options.rootRank)
            if self._group[0] != options.rootRank:
                _write(tensors[0], flat)
        return self._calls.submit("broadcast", options, tensors, run)

    def _reduced(self, tensor: torch.Tensor, op: Any) -> None:
        word, flat = _operator(op, tensor), _flat(tensor)
        self._calls.comm.allreduce(unisono.IN_PLACE, flat, word)
        _finish(op, flat, self._group[1])
        _write(tensor, flat)

    def allreduce(self, tensors: list[torch.Tensor], options: Any) -> Any:
        return self._calls.submit("all_reduce", options, tensors,
                                  lambda: self._reduced(tensors[0], options.reduceOp))

    def allreduce_coalesced(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            for tensor in tensors:
                self._reduced(tensor, options.reduceOp)
        return self._calls.submit("all_reduce_coalesced", options, tensors, run)

    def reduce(self, tensors: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            op, root = options.reduceOp, options.rootRank
            word, flat = _operator(op, tensors[0]), _flat(tensors[0])
            if self._group[0] == root:
                self._calls.comm.reduce(unisono.IN_PLACE, flat, word, root)
                _finish(op, flat, self._group[1])
                _write(tensors[0], flat)
            else:
                self._calls.comm.reduce(flat, None, word, root)
        return self._calls.submit("reduce", options, tensors, run)

    def _gathered(self, outputs: Sequence[torch.Tensor], tensor: torch.Tensor) -> None:
        own = _moved(_flat(tensor))
        self._require(outputs, tensor)
        if _same_size(outputs):
            every = torch.empty(own.numel() * len(outputs), dtype=own.dtype)
            self._calls.comm.allgather(own, every)
        else:
            counts = [output.numel() * own.numel() // max(tensor.numel(), 1) for output in outputs]
            every = torch.empty(sum(counts), dtype=own.dtype)
            self._calls.comm.allgatherv(own, every, counts=counts)
        self._distribute(every, outputs)

    def _require(self, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
        if len(tensors) != self._group[1]:
            raise _BadArgument(ValueError, f"there are {len(tensors)} tensors for "
                               f"{self._group[1]} ranks")
        if any(tensor.dtype != like.dtype for tensor in tensors):
            raise _BadArgument(TypeError, f"the tensors are not all of type {like.dtype}")

    @staticmethod
    def _distribute(every: torch.Tensor, outputs: Sequence[torch.Tensor]) -> None:
        begin = 0
        for output in outputs:
            length = output.numel() * output.element_size() // every.element_size()
            output.detach().copy_(every[begin:begin + length].view(output.dtype)
                                  .view(output.shape))
            begin += length

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                  options: Any) -> Any:
        return self._calls.submit("all_gather", options, outputs[0],
                                  lambda: self._gathered(outputs[0], inputs[0]))

    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                            options: Any) -> Any:
        def run() -> None:
            for index, tensor in enumerate(inputs):
                self._gathered([of_rank[index] for of_rank in outputs], tensor)
        return self._calls.submit("all_gather_coalesced", options, sum(outputs, []), run)

    def _gathered_single(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        if output.numel() != tensor.numel() * self._group[1] or output.dtype != tensor.dtype:
            raise _BadArgument(ValueError, f"the output has {output.numel()} elements of "
                               f"{output.dtype}, not those of {self._group[1]} inputs")
        flat = _flat(output)
        own = _flat(tensor)
        place = flat.narrow(0, self._group[0] * own.numel(), own.numel())
        is_in_place = place.data_ptr() == own.data_ptr()
        self._calls.comm.allgather(unisono.IN_PLACE if is_in_place else _moved(own), _moved(flat))
        _write(output, flat)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any) -> Any:
        return self._calls.submit("all_gather_single", options, [output],
                                  lambda: self._gathered_single(output, tensor))

    def all_gather_single_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                    options: Any) -> Any:
        def run() -> None:
            for output, tensor in zip(outputs, inputs):
                self._gathered_single(output, tensor)
        return self._calls.submit("all_gather_single_coalesced", options, outputs, run)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
               options: Any) -> Any:
        def run() -> None:
            own = _moved(_flat(inputs[0]))
            if self._group[0] != options.rootRank:
                self._calls.comm.gather(own, None, options.rootRank)
                return
            self._require(outputs[0], inputs[0])
            every = torch.empty(own.numel() * self._group[1], dtype=own.dtype)
            self._calls.comm.gather(own, every, options.rootRank)
            self._distribute(every, outputs[0])
        return self._calls.submit("gather", options, sum(outputs, []), run)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                options: Any) -> Any:
        def run() -> None:
            flat = _flat(outputs[0])
            every = None
            if self._group[0] == options.rootRank:
                self._require(inputs[0], outputs[0])
                every = torch.cat([_moved(_flat(part)) for part in inputs[0]])
            self._calls.comm.scatter(every, _moved(flat), options.rootRank)
            _write(outputs[0], flat)
        return self._calls.submit("scatter", options, outputs, run)

    def _scattered(self, output: torch.Tensor, parts: Sequence[torch.Tensor], op: Any) -> None:
        word, flat = _operator(op, output), _flat(output)
        self._require(parts, output)
        counts = None if _same_size(parts) else [part.numel() for part in parts]
        self._calls.comm.reduce_scatter(torch.cat([_flat(part) for part in parts]), flat, word,
                                        counts)
        _finish(op, flat, self._group[1])
        _write(output, flat)

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                       options: Any) -> Any:
        return self._calls.submit(
            "reduce_scatter", options, outputs,
            lambda: self._scattered(outputs[0], inputs[0], options.reduceOp))

    def _scattered_single(self, output: torch.Tensor, tensor: torch.Tensor, op: Any) -> None:
        word, flat = _operator(op, output), _flat(output)
        self._calls.comm.reduce_scatter(_flat(tensor), flat, word)
        _finish(op, flat, self._group[1])
        _write(output, flat)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor,
                              options: Any) -> Any:
        return self._calls.submit("reduce_scatter_single", options, [output],
                                  lambda: self._scattered_single(output, tensor, options.reduceOp))

    def reduce_scatter_single_coalesced(self, outputs: list[torch.Tensor],
                                        inputs: list[torch.Tensor], options: Any) -> Any:
        def run() -> None:
            for output, tensor in zip(outputs, inputs):
                self._scattered_single(output, tensor, options.reduceOp)
        return self._calls.submit("reduce_scatter_single_coalesced", options, outputs, run)

    def _exchanged(self, received: torch.Tensor, sent: torch.Tensor, receive_counts: list[int],
                   send_counts: list[int]) -> None:
        scale = sent.element_size() // _moved(sent).element_size()
        self._calls.comm.alltoallv(_moved(sent), [count * scale for count in send_counts],
                                   _moved(received), [count * scale for count in receive_counts])

    def _counts(self, tensor: torch.Tensor, rows: list[int]) -> list[int]:
        size = self._group[1]
        if rows:
            row = tensor.numel() // max(tensor.shape[0], 1)
            return [count * row for count in rows]
        if tensor.dim() == 0 or tensor.shape[0] % size != 0:
            raise _BadArgument(ValueError, f"a tensor of shape {tuple(tensor.shape)} has rows that "
                               f"are no multiple of the {size} ranks")
        return [tensor.numel() // size] * size

    def all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor, output_rows: list[int],
                          input_rows: list[int], options: Any) -> Any:
        def run() -> None:
            flat = _flat(output)
            self._exchanged(flat, _flat(tensor), self._counts(output, output_rows),
                            self._counts(tensor, input_rows))
            _write(output, flat)
        return self._calls.submit("all_to_all_single", options, [output], run)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                 options: Any) -> Any:
        def run() -> None:
            self._require(inputs, outputs[0])
            self._require(outputs, inputs[0])
            received = torch.empty(sum(each.numel() for each in outputs), dtype=outputs[0].dtype)
            self._exchanged(received, torch.cat([_flat(part) for part in inputs]),
                            [each.numel() for each in outputs], [each.numel() for each in inputs])
            self._distribute(received, outputs)
        return self._calls.submit("all_to_all", options, outputs, run)

    # The names of these calls before torch had those above.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

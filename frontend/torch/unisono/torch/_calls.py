# SPDX-License-Identifier: BSD-3-Clause
"""How the back end in Python runs operations. They run at once on the calling thread, or on a
thread of the group in the order of calls."""

import datetime
import os
import queue
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.distributed as dist
import unisono

from ._exchange import Peer, join

_DAY = datetime.timedelta(days=1)
# Each rank publishes in the communicator how its last call has ended: twice its number, or one more
# if the rank has refused it.
_FAILED = 2**64 - 1
_SHORTEST_PAUSE, _LONGEST_PAUSE = 5e-5, 2e-3  # seconds between two questions for these words


_ending: Optional[int] = None  # the thread that ends the interpreter, when it has begun
_own = threading.local()  # whether a thread serves a queue of this module
_never_free = threading.Lock()
_never_free.acquire()


def note_end_of_interpreter() -> None:
    """From now on only daemon threads are left beside the calling one. One of them that comes back
    from a call has to pass torch's C++ functions. Python before 3.14 ends it there when it takes
    the GIL of an interpreter that has ended, and with it the process. So it stays here. Threads
    that serve a queue end before."""
    global _ending
    _ending = threading.get_ident()


def stay_if_interpreter_ends() -> None:
    if _ending not in (None, threading.get_ident()) and not hasattr(_own, "serves"):
        _never_free.acquire()


class BadArgument(Exception):
    """An argument of this rank is wrong, which all ranks have to hear."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Work(dist.Work):
    """One operation, complete when its thread says so. Its future has the results in `lists`
    lists of equal length."""

    def __init__(self, results: list[torch.Tensor], lists: int = 1) -> None:
        super().__init__()
        self._results, self._lists = results, lists
        self._ended = threading.Event()
        self._error: Optional[Exception] = None
        self._lock = threading.Lock()  # for the next one and the end
        self._source: Optional[torch.futures.Future[None]] = None  # of the future
        self._future: Any = None  # made when it is asked for
        self._process = os.getpid()

    def _value(self) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._results

    def _future_value(self) -> Any:
        results = self._value()
        if self._lists == 1:
            return results
        length = len(results) // max(self._lists, 1)
        return [results[i * length:(i + 1) * length] for i in range(self._lists)]

    def complete(self, error: Optional[Exception]) -> None:
        future = self.end(error)
        if future is not None:
            future.set_result(None)  # runs callbacks, so without the lock

    def end(self, error: Optional[Exception]) -> Optional["torch.futures.Future[None]"]:
        """The future that the caller completes when callbacks may run; None if there are none."""
        self._error = error
        with self._lock:
            self._ended.set()
            return self._source

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        try:
            return self._wait(timeout)
        finally:
            stay_if_interpreter_ends()

    def _wait(self, timeout: datetime.timedelta) -> bool:
        if not self._ended.is_set() and self._process != os.getpid():
            raise dist.DistBackendError("unisono: a forked child cannot wait for an operation of "
                                        "its parent")
        if (calls := getattr(_own, "completing", None)) is not None:
            calls.let_others_serve()
        if not self._ended.wait(timeout.total_seconds() or None):
            raise dist.DistBackendError(f"unisono: a wait timed out after {timeout}; the operation "
                                        "goes on")
        self._value()
        return True

    @property
    def error(self) -> Optional[Exception]:
        """The error of a complete operation; None if it has none."""
        return self._error

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def result(self) -> list[torch.Tensor]:
        return self._value()

    def get_future(self) -> Any:
        """Complete if the operation is."""
        with self._lock:
            is_new, has_ended = self._future is None, self._ended.is_set()
            if is_new:
                self._source = torch.futures.Future()
                self._future = self._source.then(lambda _: self._future_value())
        if is_new and has_ended and self._source is not None:
            self._source.set_result(None)
        return self._future


class Calls:
    """Runs the operations of a group on its communicator. open() makes it, or the first operation,
    which then waits for the other ranks."""

    def __init__(self, store: Callable[[], Any], rank: int, size: int, timeout: datetime.timedelta,
                 peer: Optional[Peer] = None, ranks: tuple[int, ...] = ()) -> None:
        """`ranks`: the numbers by which errors name the ranks, if not as the library does."""
        self._store, self._place = store, (rank, size)
        self._peer, self._ranks = peer, ranks
        self._using = threading.Lock()  # for the communicator
        self._comm: Optional[unisono.Communicator] = None
        self.timeout = timeout
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Those that do not serve the queue are in callbacks that have started something.
        self._server: Optional[threading.Thread] = None
        self._threads: list[threading.Thread] = []
        self.pending = 0  # operations
        self._lock = threading.Lock()
        self._world: Optional[unisono.Communicator] = None  # of the job; the other one is a part
        self._count = 0  # of calls
        self._has_failed = False  # for good
        self._has_refused = False  # the last call
        self._is_closing = False
        self._ended = ""  # how the group has ended
        self._process = os.getpid()

    def open(self, end: Optional[float] = None) -> None:
        """`end`: by time.monotonic(), of the first wait for the other ranks."""
        if self._comm is None:
            self._comm = self._world = join(self._store(), *self._place, self.timeout,
                                            lambda: bool(self._ended), self._peer, end)

    def is_own(self) -> bool:
        """Not in a forked child."""
        return self._process == os.getpid()

    @property
    def comm(self) -> unisono.Communicator:
        assert self._comm is not None
        return self._comm

    def submit(self, name: str, options: Any, results: list[torch.Tensor],
               operation: Callable[[], None], lists: int = 1) -> Optional[Work]:
        """No work for a blocking call that has ended here; torch then waits for none."""
        try:
            return self._submit(name, options, results, operation, lists)
        finally:
            stay_if_interpreter_ends()

    def _submit(self, name: str, options: Any, results: list[torch.Tensor],
                operation: Callable[[], None], lists: int) -> Optional[Work]:
        if not self.is_own():
            raise dist.DistBackendError(f"unisono: {name}: a forked child has no part in the group "
                                        "of its parent")
        if self._ended:
            raise dist.DistBackendError(f"unisono: {name}: the group has been {self._ended}")
        given = options.timeout
        limit = given if datetime.timedelta(0) < given < _DAY else self.timeout
        with self._lock:
            if self._is_closing:
                raise dist.DistBackendError(f"unisono: {name}: the group has been shut down")
            is_idle = self.pending == 0
            self.pending += 1
        if is_idle and not getattr(options, "asyncOp", False):
            try:
                self._run(name, limit, operation)
            finally:
                with self._lock:
                    self.pending -= 1
            return None
        work = Work(results, lists)
        if torch.is_inference_mode_enabled():  # only there may tensors of that mode be written
            operation = torch.inference_mode()(operation)
        with self._lock:
            # A callback may wait for what it starts, so another thread serves from now on.
            if self._server in (None, threading.current_thread()):
                self._start_server()
        self._queue.put((work, name, limit, operation, time.monotonic() + limit.total_seconds()))
        return work

    def _start_server(self) -> None:
        self._threads = [each for each in self._threads if each.is_alive()]
        self._server = threading.Thread(target=self._serve, name="unisono-torch", daemon=True)
        self._threads.append(self._server)
        self._server.start()

    def let_others_serve(self) -> None:
        """Before this thread waits in a callback, which may be for what is queued already."""
        with self._lock:
            if self._server is threading.current_thread():
                self._start_server()

    def _run(self, name: str, limit: datetime.timedelta, operation: Callable[[], None],
             end: Optional[float] = None) -> None:
        if self._ended:
            raise dist.DistBackendError(f"unisono: {name}: the group has been {self._ended}")
        self.open(end)
        try:
            with self._using:
                self._begin(min(limit, _DAY).total_seconds())
                operation()
                if self._peer is None:
                    self.comm.publish(2 * self._count)
        except BadArgument as error:
            self._refuse(f"unisono: {name}: {error}")
            raise error.kind(f"unisono: {name}: {error}") from None
        except unisono.Error as error:
            is_own = isinstance(error, (unisono.ArgumentError, unisono.DatatypeError))
            if is_own and not self._has_failed and not self._ended:
                self._note_refusal()
                raise  # ValueError, TypeError: of the arguments of this call
            self._note_failure()
            raise dist.DistBackendError(f"unisono: {name}: {self._why(error, limit)}") from error
        except Exception as error:
            self._refuse(f"unisono: {name}: {error}")
            raise

    def _begin(self, seconds: float) -> None:
        self.comm.timeout = seconds
        if self._peer is not None:
            return  # the two ranks do not make the same calls
        if self._has_refused:
            self._recover(seconds)
        self._count += 1

    def _note_refusal(self) -> None:
        """The other ranks hear it at once. If all ranks have refused the call, they go on at the
        next one."""
        self._has_failed = self._has_failed or self._peer is not None
        self._has_refused = not self._has_failed
        if self._has_refused:
            self.comm.publish(2 * self._count + 1)

    def _note_failure(self) -> None:
        """A rank that has refused this call does not wait for it."""
        self._has_failed = True
        if self._peer is not None:
            return
        try:
            self.comm.publish(_FAILED)
        except unisono.Error:
            pass  # the communicator has ended

    def _recover(self, seconds: float) -> None:
        """The communicator has failed by the call that this rank has refused. Nothing of that call
        was sent, so all ranks go on in another one if none has made it. Otherwise the next call
        tells why."""
        self._has_refused = False
        try:
            if not self._have_all_refused(time.monotonic() + seconds):
                self._note_failure()
                return
            made = self.comm.shrink()
        except unisono.Error:
            self._note_failure()
            return
        except BaseException:
            self._note_failure()
            raise
        size, before = self.comm.size, self._comm
        self._comm = made
        made.timeout = seconds
        if before is not None and before is not self._world:
            before.close()
        if made.size != size:  # a rank was lost meanwhile
            self._refuse("ranks are lost")
            self._note_failure()

    def _have_all_refused(self, limit: float) -> bool:
        """Asks what the ranks have published until that is certain. A rank that waits in this call
        hears of the refusal, and fails."""
        own, pause = 2 * self._count, _SHORTEST_PAUSE
        while not self.comm.query("==", own + 1):
            has_one_made = not self.comm.query("!=", own)
            is_one_beyond = not self.comm.query("<=", own + 1)
            if has_one_made or is_one_beyond or self._ended or time.monotonic() >= limit:
                return False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def _why(self, error: unisono.Error, limit: datetime.timedelta) -> str:
        if self._ended:
            return f"the group has been {self._ended}"
        text, rank = str(error), self.comm.rank
        if self._ranks:
            text = re.sub(r"\brank ([01])\b", lambda m: f"rank {self._ranks[int(m[1])]}", text)
            rank = self._ranks[rank]
        if isinstance(error, unisono.TimeoutError) and error.rank in (None, self.comm.rank):
            return (f"rank {rank} timed out at its timeout of "
                    f"{round(limit.total_seconds() * 1000)} ms, and the group has ended: {text}")
        return text

    @property
    def has_ended(self) -> bool:
        return bool(self._ended)

    def why_lost(self, rank: int) -> str:
        """How the rank was lost, or that it has left, by what the library knows now. Empty: it is
        there, or cannot be asked for because a call is in progress. Any thread may call it."""
        if self._comm is None or self._ended or not self._using.acquire(blocking=False):
            return ""
        try:
            return self._comm.rank_state(rank).why
        except unisono.Error:
            return ""
        finally:
            self._using.release()

    def _refuse(self, why: str) -> None:
        self._note_refusal()
        try:
            self.comm.refuse(why)
        except unisono.Error:
            pass  # it has failed already

    def _serve(self) -> None:
        _own.serves = True
        while (self._server is threading.current_thread()
               and (item := self._queue.get()) is not None):
            work, name, limit, operation, end = item
            error: Optional[Exception] = None
            try:
                self._run(name, limit, operation, end)
            except Exception as raised:
                error = raised
            del item, operation
            with self._lock:
                self.pending -= 1
            _own.completing = self
            work.complete(error)
            _own.completing = None
            del work

    def stop_accepting(self) -> None:
        """Later operations fail; those under way go on."""
        with self._lock:
            self._is_closing = True

    def abort(self) -> None:
        """A call in progress ends at once, by its limit; otherwise the others are told here."""
        if self._ended or not self.is_own():
            return
        self._ended = "aborted"
        if self._comm is None:
            return
        try:
            self.comm.refuse("the group has been aborted")
        except unisono.StateError:
            self.comm.timeout = 1e-9
        except unisono.Error:
            pass

    def finish(self) -> None:
        """Runs the queued operations, and ends the communicator."""
        self.finish_queued()
        self.close()

    def finish_queued(self) -> None:
        """Runs the queued operations. Later ones fail."""
        if not self.is_own():
            return
        self.stop_accepting()
        if self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._server, self._threads = None, []

    def close(self) -> None:
        if not self.is_own():
            return
        self._ended = self._ended or "shut down"
        if self._comm is None:
            return
        try:
            assert self._world is not None
            self._world.close()
        except unisono.Error:
            pass  # of a call that nobody has waited for

# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that are started by a program itself, for instance from a notebook."""

import contextlib
import os
import pickle
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Callable, NoReturn, Optional

from . import _native
from ._errors import PeerArgumentError, RankLostError
from ._whole import whole


# Seconds that the other ranks have to end by themselves after one has failed.
_GRACE = 5.0
# Seconds from the end of a child's connection to that of the child, if it is dying.
_AT_ITS_END = 0.5


class SpawnError(RuntimeError):
    """A rank of spawn() has raised an exception, or has ended without a result.

    `rank` is the first such rank. The exception that it raised is the cause, if it can be pickled
    and is none of unisono.mpi.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


class _Outcome:
    """The message of a rank to the parent: a result, or an exception and its text. An empty text
    means that there is none. The text is readable, also where the exception cannot be unpickled.
    `is_of_others`: it failed because another rank has."""

    def __init__(self, result: Any = None, error: Optional[BaseException] = None, text: str = "",
                 is_of_others: bool = False) -> None:
        self.result = result
        self.error = error
        self.text = text
        self.is_of_others = is_of_others


def _pickled(outcome: _Outcome) -> tuple[bytes, bytes]:
    """Its text, and the rest."""
    try:
        rest = pickle.dumps((outcome.result, outcome.error, outcome.is_of_others))
        return outcome.text.encode("utf-8", "replace"), rest
    except Exception as error:  # of the caller's object: any kind
        text = outcome.text or f"its result cannot be pickled: {error}"
        return (text.encode("utf-8", "replace"),
                pickle.dumps((None, None, outcome.is_of_others)))


def _is_of_mpi(error: BaseException) -> bool:
    """The parent must not import unisono.mpi, which joins a job then."""
    return any(kind.__module__.startswith("unisono.mpi") for kind in type(error).__mro__)


def _is_of_others(error: Optional[BaseException]) -> bool:
    """Those of unisono.mpi have the library's exception as their cause."""
    while error is not None and not isinstance(error, (RankLostError, PeerArgumentError)):
        error = error.__cause__
    return error is not None


def _run(function: Callable[..., Any], args: Sequence[Any], connection: Connection) -> NoReturn:
    """In a child, which never returns to the program."""
    status = 1
    try:
        try:
            outcome = _Outcome(function(*args))
            status = 0
        except BaseException as error:  # noqa: B902 (SystemExit as well)
            kept = None if _is_of_mpi(error) else error
            outcome = _Outcome(error=kept, text=traceback.format_exc(),
                               is_of_others=_is_of_others(error))
        for part in _pickled(outcome):
            connection.send_bytes(part)
        connection.close()
        _native.end_of_interpreter()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _child(function: Callable[..., Any], args: Sequence[Any], connection: Connection,
           environment: dict[str, str], parent: int) -> NoReturn:
    if not _native.end_with_parent(parent):
        os._exit(1)
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _run(function, args, connection)


def spawn(function: Callable[..., Any], args: Sequence[Any] = (), *, ranks: int) -> list[Any]:
    """Runs `function(*args)` in `ranks` forked processes, and returns their results by rank.

    In it, `unisono.init()` joins a job of these ranks. The calling process is none of them, and
    must not have called `unisono.init()` or `unisono.init_with()` before. Results have to be
    picklable; the function need not be. If a rank fails, the others are told by their next
    collective, and SpawnError is raised. If the calling process ends, also by a signal, so do the
    ranks.
    """
    if whole(ranks, "ranks") < 1:
        raise ValueError(f"ranks is {ranks}; it must be at least 1")
    if _native.has_joined():
        raise RuntimeError("spawn: this process has called unisono.init() or init_with(), so its "
                           "children cannot; call spawn first, or in another process")
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    name = f"unix:@unisono-spawn-{parent}-{secrets.token_hex(8)}"
    children: dict[int, int] = {}
    connections: dict[Connection, int] = {}
    outcomes: dict[int, _Outcome] = {}
    try:
        for rank in range(ranks):
            receiver, sender = Pipe(duplex=False)
            environment = {"UNISONO_RANK": str(rank), "UNISONO_SIZE": str(ranks),
                           "UNISONO_RENDEZVOUS": name}
            child = os.fork()
            if child == 0:
                receiver.close()
                for other in connections:
                    other.close()
                _child(function, args, sender, environment, parent)
            sender.close()
            children[rank] = child
            connections[receiver] = rank
        waiting = dict(connections)
        limit: Optional[float] = None
        while waiting:
            ended = wait(list(waiting), limit)
            if not ended:
                break
            for ready in ended:
                assert isinstance(ready, Connection)
                rank = waiting.pop(ready)
                outcomes[rank] = _receive(ready) or _Outcome(text=_end_of(rank, children))
                if outcomes[rank].text:
                    limit = _GRACE
        return _results(outcomes, children)
    finally:
        for connection in connections:
            connection.close()
        _end(children)


def _receive(connection: Connection) -> Optional[_Outcome]:
    """None: the rank has ended, or is ending, without a result."""
    try:
        text = connection.recv_bytes().decode()
        rest = connection.recv_bytes()
    except EOFError:
        return None
    try:
        result, error, is_of_others = pickle.loads(rest)
        return _Outcome(result, error, text, is_of_others)
    except Exception as failure:  # of the caller's class: any kind
        return _Outcome(text=text or f"its result cannot be unpickled: {failure}")


def _end_of(rank: int, children: dict[int, int]) -> str:
    """How a child has ended whose connection is closed without a result."""
    deadline = time.monotonic() + _AT_ITS_END  # it may have closed it by itself, and go on
    while time.monotonic() < deadline:
        try:
            child, status = os.waitpid(children[rank], os.WNOHANG)
        except ChildProcessError:  # where the program ignores SIGCHLD, the kernel has taken it away
            break
        if child != 0:
            del children[rank]
            if not os.WIFSIGNALED(status):
                break
            number = os.WTERMSIG(status)
            return f"it was killed by signal {number} ({signal.strsignal(number)})"
        time.sleep(0.001)
    return "it ended without a result"


def _results(outcomes: dict[int, _Outcome], children: dict[int, int]) -> list[Any]:
    failed = [rank for rank, outcome in outcomes.items() if outcome.text]
    if not failed:
        for rank, child in list(children.items()):
            _wait_for(child)
            del children[rank]
        return [outcomes[rank].result for rank in range(len(outcomes))]
    # In the order in which they ended, those that failed because of another rank last.
    failed.sort(key=lambda rank: outcomes[rank].is_of_others)
    first = outcomes[failed[0]]
    raise SpawnError(f"rank {failed[0]} failed: {first.text.rstrip()}", failed[0]) from first.error


def _end(children: dict[int, int]) -> None:
    """Ends the children of a spawn that has failed."""
    for child in children.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    for child in children.values():
        _wait_for(child)


def _wait_for(child: int) -> None:
    # Where the program ignores SIGCHLD, the kernel takes its children away.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)

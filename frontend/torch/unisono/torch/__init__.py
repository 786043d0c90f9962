# SPDX-License-Identifier: BSD-3-Clause
"""The back end "unisono" of torch.distributed, for tensors in host memory. Tensors of devices are
copied to host memory and back.

    torch.distributed.init_process_group("unisono")
    torch.distributed.init_process_group("cpu:unisono,cuda:nccl")

torch imports this module by itself and calls register(), unless TORCH_DEVICE_BACKEND_AUTOLOAD=0 is
set. Then `import unisono.torch` does it.

The extension module is for one minor version of torch, which it was built with: 2.8 or later. With
another torch, the back end in Python takes its place and says so once. torch takes back ends in
Python from 2.15 on; an older one gets an ImportError. The environment variable TORCH_UNISONO
chooses: `auto`, `compiled` (an error instead) or `python`.
"""

import atexit
import datetime
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import Any

import torch
import torch.distributed as dist

_NAME = "unisono"
# Seconds that operations have at the end of the interpreter, if no exception ends it.
_GRACE = 5.0
_CHOICES = ("auto", "compiled", "python")
_RECORDER_SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")


def _minor(version: str) -> list[str]:
    return version.split("+")[0].split(".")[:2]


def _compiled() -> Any:
    """The extension module; ImportError if it is not one for this torch."""
    from . import _c10d  # type: ignore[attr-defined]
    if _minor(_c10d.torch_version) != _minor(torch.__version__):
        raise ImportError(f"it was built for torch {_c10d.torch_version}")
    return _c10d


def takes_python_back_ends() -> bool:
    """Whether this torch takes back ends in Python. torch before 2.15 cannot make one."""
    try:
        type("_Probe", (torch._C._distributed_c10d.Backend,), {})(0, 1)
    except TypeError:
        return False
    return True


def _choose_flight_recorder() -> None:
    """torch 2.15 notes each call of a back end with Python's stack, so that programs that hang can
    be examined. That takes as long as the call. The errors of this back end name the rank and the
    call that are missing. So torch notes its calls only if the program asks for it. A group decides
    when it is made."""
    leaves_out = getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", None)
    if not isinstance(leaves_out, set):  # of another torch
        return
    if any(os.environ.get(name) for name in _RECORDER_SIZES):
        leaves_out.discard(_NAME)
    else:
        leaves_out.add(_NAME)


def _has_failed() -> bool:
    """An exception ends this program. In a child of multiprocessing it is still on its way."""
    return (getattr(sys, "last_value", None) is not None
            or sys.exc_info()[0] not in (None, SystemExit))


def _end_groups(end: Callable[[datetime.timedelta], list[str]]) -> None:
    """At the end of a program that has not called destroy_process_group(). Threads of a group must
    not return to an interpreter that has ended. Pending operations get some time. Then they are
    cancelled, so that this rank ends and the others learn why."""
    has_failed = _has_failed()
    if multiprocessing.parent_process() is not None:
        # Other programs have waited for their threads and executors, which may use a group, by now.
        # A child of multiprocessing does it later: the same call, which then has no effect.
        threading._shutdown()  # type: ignore[attr-defined]
    for line in end(datetime.timedelta(seconds=0 if has_failed else _GRACE)):
        print(f"{line}; wait for each operation, or call destroy_process_group()",
              file=sys.stderr, flush=True)


_ends_in: dict[str, int] = {}  # by kind of back end: the process whose end is prepared


def _prepare_end(kind: str, end: Callable[[datetime.timedelta], list[str]]) -> None:
    """Once for each process, before the end of the package unisono, which is imported by now.
    Children of multiprocessing run only finalizers that are registered with multiprocessing."""
    if _ends_in.get(kind) != os.getpid():
        _ends_in[kind] = os.getpid()
        atexit.register(Finalize(None, _end_groups, (end,), exitpriority=0))


def _create(options: Any, _: Any) -> Any:
    """The back end of a new group. torch.distributed calls it."""
    _choose_flight_recorder()
    arguments = options.store, options.group_rank, options.group_size, options.timeout
    choice = os.environ.get("TORCH_UNISONO", "auto")
    if choice not in _CHOICES:
        raise ValueError(f"TORCH_UNISONO is {choice!r}, and is one of {', '.join(_CHOICES)}")
    if choice != "python":
        try:
            compiled = _compiled()
            _prepare_end("compiled", compiled.end_living_groups)
            return compiled.create(*arguments)
        except ImportError as error:
            why = (f"the extension module of unisono.torch cannot be used with torch "
                   f"{torch.__version__}: {error}; build it anew: pip install "
                   "--no-build-isolation --force-reinstall ./frontend/torch")
            if choice == "compiled" or not takes_python_back_ends():
                raise ImportError(why) from error
            warnings.warn(f"{why}. The slower back end in Python takes its place.", stacklevel=2)
    if not takes_python_back_ends():
        raise ImportError(f"TORCH_UNISONO is python, and torch {torch.__version__} takes no back "
                          "ends in Python; 2.15 does")
    from . import _python  # and unisono
    _prepare_end("python", _python.end_living_groups)
    return _python.PythonBackend(*arguments)


def _devices() -> list[str]:
    """Where no GPU can be used, a group must not serve cuda. In each barrier torch 2.15 asks for
    the current stream of each device of a group, and throws and catches an exception for cuda. The
    question starts no CUDA runtime where there is a driver, so that programs may fork."""
    return ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]


def register() -> None:
    if dist.is_available() and _NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(_NAME, _create, extended_api=True, devices=_devices())


register()

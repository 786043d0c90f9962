# SPDX-License-Identifier: BSD-3-Clause
"""As in a container by default: 64 MiB of /dev/shm, and no reading of other processes' memory."""

import os
import subprocess
import sys

import pytest

# Enters a mount namespace with a small /dev/shm, forbids process_vm_readv and process_vm_writev,
# and becomes the command of its arguments. Ends with 77 where the machine allows no namespace.
CONTAINER = r'''
import ctypes, os, platform, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, RECURSIVE_PRIVATE = 0x20000, 0x4000 | 0x40000
if libc.unshare(NEW_MOUNTS) or libc.mount(b"none", b"/", None, RECURSIVE_PRIVATE, None):
    sys.exit(77)
if libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m"):
    sys.exit(77)
forbidden = {"x86_64": (310, 311), "aarch64": (270, 271)}[platform.machine()]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, NOT_PERMITTED = 0x7FFF0000, 0x00050000 | 1
code = struct.pack("HBBI", LOAD, 0, 0, 0)  # the number of the call
for number in forbidden:
    code += struct.pack("HBBI", EQUAL, 0, 1, number) + struct.pack("HBBI", RETURN, 0, 0,
                                                                   NOT_PERMITTED)
code += struct.pack("HBBI", RETURN, 0, 0, ALLOW)
buffer = ctypes.create_string_buffer(code)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(len(code) // 8, ctypes.addressof(buffer))
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
assert libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
assert libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
'''

RANK = r'''
import ctypes, errno, os
import numpy, unisono

libc = ctypes.CDLL(None, use_errno=True)
assert libc.process_vm_readv(os.getpid(), None, 0, None, 0, 0) == -1
assert ctypes.get_errno() == errno.EPERM
memory = os.statvfs("/dev/shm")
assert memory.f_blocks * memory.f_frsize == 64 << 20
with unisono.init() as comm:
    mine = numpy.full(16 << 20, comm.rank + 1.0)  # 128 MiB
    total = comm.allreduce(mine)
    assert (total == comm.size * (comm.size + 1) / 2).all()
    parts = numpy.split(comm.alltoall(mine), comm.size)
    assert [part[0] for part in parts] == [rank + 1.0 for rank in range(comm.size)]
    comm.broadcast(mine, root=1)
    assert (mine == 2.0).all()
    assert os.listdir("/dev/shm") == []
    print("rank", comm.rank, "is well", flush=True)
'''


def test_collectives_of_long_arrays():
    ranks = 4
    command = [sys.executable, "-c", CONTAINER, sys.executable, "-m", "unisono", "run", "-n",
               str(ranks), sys.executable, "-c", RANK]
    ended = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if ended.returncode == 77:
        pytest.skip("this machine does not let us make mount namespaces")
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("is well") == ranks

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the tests of the NIC path can run here: exit status 0 if so, otherwise 1 and the reason.

They take root, and a Linux 6.6 or newer that lets root make BPF maps and network namespaces.
"""

import ctypes
import os
import re
import struct
import sys

LEAST_KERNEL = (6, 6)
SYS_BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
BPF_MAP_CREATE = 0
BPF_MAP_TYPE_ARRAY = 2
CLONE_NEWNET = 0x40000000


def makes_map(libc):
    number = SYS_BPF.get(os.uname().machine)
    if number is None:
        return False
    attributes = ctypes.create_string_buffer(
        struct.pack("=5I", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0).ljust(128, b"\0"))
    descriptor = libc.syscall(number, BPF_MAP_CREATE, attributes, 128)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


def makes_namespace(libc):
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(CLONE_NEWNET) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def why_not():
    if os.geteuid() != 0:
        return "they need root"
    kernel = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if kernel < LEAST_KERNEL:
        return f"Linux {os.uname().release} is older than {'.'.join(map(str, LEAST_KERNEL))}"
    libc = ctypes.CDLL(None, use_errno=True)
    if not makes_map(libc):
        return "the kernel lets this process make no BPF map"
    if not makes_namespace(libc):
        return "the kernel lets this process make no network namespace"
    return ""


def main():
    reason = why_not()
    if reason:
        print(reason)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())

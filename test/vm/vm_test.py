#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a part of the tests in the virtual machine of `./dev vm` and passes on their output.

usage: vm_test.py --source FOLDER --build FOLDER --program NAME [--seconds N] [--kernel KERNEL]
                  [--interfaces N] [--model MODEL] FILTER

FILTER chooses the cases of the GoogleTest program NAME of the build. They run on four hosts with
soft-RoCE. With --interfaces they run instead on that many network interfaces of the machine, which
QEMU emulates as MODEL. Where the machine cannot be had, or is so slow that it gives no result
within N seconds, it says why and ends with 77. With UNISONO_VM_REQUIRED set, as by
`./dev test --vm`, that is a failure.
"""

import argparse
import os
import pathlib
import platform
import subprocess
import sys

SKIPPED = 77  # SKIP_RETURN_CODE
NO_RESULT = 125  # of vm.sh
HOSTS = 4


def why_not(source, kept, kernel):
    """The parts that the machine lacks; nothing is downloaded or installed here."""
    if platform.machine() != "x86_64":
        return f"the virtual machine is made for x86_64, and this machine is {platform.machine()}"
    if not any((kept / kernel).glob("linux-image-*")):
        setting = f"UNISONO_VM_KERNEL={kernel} " if kernel else ""
        return f"the virtual machine has no such kernel yet; `{setting}./dev vm true` downloads it"
    prepared = subprocess.run([source / "scripts/vm/vm.sh", "--prepare", kept],
                              env={**os.environ, "UNISONO_VM_KERNEL": kernel},
                              capture_output=True, text=True, check=False)
    if prepared.returncode != 0:
        return prepared.stderr.strip() or f"vm.sh --prepare: exit code {prepared.returncode}"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    for tool in ("ip", "tc", "rdma", "unshare"):
        if not any(os.access(f"{folder}/{tool}", os.X_OK) for folder in path.split(":")):
            return f"{tool} is missing: sudo apt-get install -y iproute2 util-linux"
    return ""


def skip(reason, run=None):
    required = bool(os.environ.get("UNISONO_VM_REQUIRED"))
    if run is not None:
        print(run.stdout, run.stderr, sep="\n")
    print(f"failed: {reason}" if required else f"skipped: {reason}")
    return 1 if required else SKIPPED


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=int, default=1200)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--interfaces", type=int, default=0)
    parser.add_argument("--model", default="virtio-net-pci")
    parser.add_argument("filter")
    options = parser.parse_args()

    kept = options.source / "build" / "vm"
    reason = why_not(options.source, kept, options.kernel)
    if reason:
        return skip(reason)
    scripts = options.source / "scripts/vm"
    hosts = [scripts / "devices.sh"] if options.interfaces else [scripts / "hosts.sh", str(HOSTS)]
    run = subprocess.run(
        [scripts / "vm.sh", kept, *hosts, options.build / "test" / options.program,
         f"--gtest_filter={options.filter}"],
        env={**os.environ, "UNISONO_VM_LIMIT": str(options.seconds),
             "UNISONO_VM_KERNEL": options.kernel, "UNISONO_VM_DEVICES": str(options.interfaces),
             "UNISONO_VM_DEVICE_MODEL": options.model},
        cwd=options.source, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=False)
    if run.returncode == NO_RESULT:
        last = run.stderr.strip().splitlines()[-1]
        return skip(f"the virtual machine gave no result: {last}", run)
    print(run.stdout)
    print(run.stderr, file=sys.stderr)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())

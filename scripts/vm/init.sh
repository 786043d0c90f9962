#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 inside the virtual machine of `./dev vm`. Its root is that of the machine outside, read
# only, and what is written here is lost. It runs the command that vm.sh left in the shared folder,
# leaves output and exit code there, and stops the machine.
# The kernel's command line gives it KERNEL_FOLDER.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts /run/netns /run/vm
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none shared /run/vm
mkdir -p /lib/modules
ln -sfn "$KERNEL_FOLDER/lib/modules/$(uname -r)" "/lib/modules/$(uname -r)"
hostname vm
ip link set lo up
ulimit -l unlimited

/bin/bash /run/vm/job </dev/null >/run/vm/stdout 2>/run/vm/stderr
code=$?
echo "$code" >/run/vm/code
sync
echo o >/proc/sysrq-trigger
sleep 60

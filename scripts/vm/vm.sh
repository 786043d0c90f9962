#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs one command as root in a small virtual machine, and returns its output and exit code. The
# machine has Debian's kernel with soft-RoCE (rdma_rxe), which many kernels lack. Its root is this
# machine's, read only: what the command writes is lost. `./dev vm` installs what it needs.
# Usage: vm.sh FOLDER COMMAND [ARGUMENT...]; FOLDER keeps the kernel and the lock. Or, to have all
# that a command needs and run none: vm.sh --prepare FOLDER
# UNISONO_VM_CPUS (2), UNISONO_VM_MEMORY (1024, MiB) and UNISONO_VM_LIMIT (seconds, 900) change it.
# UNISONO_VM_KERNEL chooses another kernel: a series, as 6.12, or `newest` (kernel.sh).
# UNISONO_VM_DEVICES (0) gives it so many network interfaces, which are joined by a hub inside QEMU;
# UNISONO_VM_DEVICE_MODEL (virtio-net-pci) is what QEMU calls them. devices.sh prepares them.
# Exit code 125: the machine gave no answer; its console is shown.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
only_prepare=
if [[ ${1:-} == --prepare ]]; then
  only_prepare=yes
  shift
fi
mkdir -p "$1"
folder=$(readlink -f "$1")
shift
[[ -n $only_prepare || $# -gt 0 ]] || {
  echo "vm: no command; for example: ./dev vm rdma link" >&2
  exit 2
}
fail() {
  printf 'vm: %s\n' "$*" >&2
  exit 125
}

[[ $(uname -m) == x86_64 ]] || fail "it is made for x86_64, and this machine is $(uname -m)"
for tool in qemu-system-x86_64 busybox modprobe cpio; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
    fail "$tool is missing: sudo apt-get install -y qemu-system-x86 busybox-static kmod cpio"
done
PATH=$PATH:/usr/sbin:/sbin

# A second machine would take the processors of the first.
exec 9>"$folder/lock"
flock 9

kernel=$("$here/kernel.sh" "$folder" "${UNISONO_VM_KERNEL:-}")
version=$(basename "$(echo "$kernel"/lib/modules/*)")
image=$kernel/boot/vmlinuz-$version
[[ -e $image ]] || image=$kernel/lib/modules/$version/vmlinuz
initramfs=$folder/initramfs-$version.gz
[[ $initramfs -nt $here/initramfs.sh ]] || "$here/initramfs.sh" "$kernel" "$initramfs"
[[ -z $only_prepare ]] || exit 0

# /dev/kvm alone proves nothing: some hosts offer one that cannot run this kernel. Without cx16 the
# kernel uses no cmpxchg16b: QEMU 7.2 emulates it with flags that have bits of an operand, and once
# the kernel's allocator stopped with an exception right behind it.
accelerator=(-accel "tcg,thread=multi,tb-size=256" -cpu "max,cx16=off")
if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]]; then
  accelerator=(-accel kvm -cpu host)
fi

# Interface i has the Ethernet address that tests give to host i. XDP needs frames as they were
# sent, so nothing is left to the machine outside.
devices=()
model=${UNISONO_VM_DEVICE_MODEL:-virtio-net-pci}
frames_as_sent=
[[ $model != virtio-net-* ]] ||
  frames_as_sent=,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,guest_csum=off
for ((i = 1; i <= ${UNISONO_VM_DEVICES:-0}; ++i)); do
  devices+=(-netdev "hubport,hubid=0,id=port$i" -device
    "$model,netdev=port$i,mac=$(printf 02:00:00:00:00:%02x "$i")$frames_as_sent")
done

shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
{
  printf 'cd %q\n' "$PWD"
  printf 'exec'
  printf ' %q' "$@"
  echo
} >"$shared/job"
# On a busy machine the kernel measures the time stamp counter wrongly, and its clock runs up to ten
# times too fast. The frequency of the HPET is known.
command_line="console=ttyS0 panic=-1 quiet mitigations=off nokaslr clocksource=hpet tsc=unstable"
code=0
timeout -k 5 "${UNISONO_VM_LIMIT:-900}" qemu-system-x86_64 -M q35 "${accelerator[@]}" \
  -smp "${UNISONO_VM_CPUS:-2}" -m "${UNISONO_VM_MEMORY:-1024}" \
  -nodefaults -no-user-config -display none -no-reboot -nic none "${devices[@]}" \
  -serial "file:$shared/console" -device virtio-rng-pci \
  -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
  -device virtio-9p-pci,fsdev=root,mount_tag=root \
  -fsdev "local,id=shared,path=$shared,security_model=none" \
  -device virtio-9p-pci,fsdev=shared,mount_tag=shared \
  -kernel "$image" -initrd "$initramfs" \
  -append "$command_line KERNEL_FOLDER=$kernel VM_INIT=$here/init.sh" \
  >"$shared/qemu" 2>&1 9>&- || code=$?
cat "$shared/stdout" 2>/dev/null || true
cat "$shared/stderr" >&2 2>/dev/null || true
[[ ! -s $shared/code ]] || exit "$(<"$shared/code")"
cat "$shared/qemu" >&2
tail -n 20 "$shared/console" >&2 || true
[[ $code -ne 124 ]] || fail "no result within ${UNISONO_VM_LIMIT:-900} s (UNISONO_VM_LIMIT)"
fail "the machine ended without a result (qemu: exit code $code)"

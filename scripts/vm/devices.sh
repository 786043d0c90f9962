#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the virtual machine of `./dev vm`, which was started with UNISONO_VM_DEVICES: loads the
# drivers of its network interfaces and runs a command, with the number of interfaces in VM_DEVICES.
# Usage: devices.sh COMMAND [ARGUMENT...]
set -euo pipefail

[[ $(hostname) == vm ]] || {
  echo "devices.sh: it is for the virtual machine: UNISONO_VM_DEVICES=4 ./dev vm $0 COMMAND" >&2
  exit 2
}
for device in /sys/bus/pci/devices/*; do
  # 0x02....: a network controller. virtio has its driver for the bus already.
  [[ $(<"$device/class") != 0x02* || -e $device/driver ]] || modprobe "$(<"$device/modalias")"
done
# The tests' own hosts are made first, with links of these kinds.
modprobe -a virtio_net veth bridge
count() { find /sys/class/net -maxdepth 1 -lname '*/pci*' | wc -l; }
VM_DEVICES=$(count)
export VM_DEVICES
[[ $VM_DEVICES -gt 0 ]] || {
  echo "devices.sh: the machine has no network interfaces: set UNISONO_VM_DEVICES" >&2
  exit 2
}
exec "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the virtual machine of `./dev vm`: makes a soft-RoCE device, rxe0, on an interface of
# its own, and runs a command. Processes of the machine reach each other by it.
# Usage: rdma.sh COMMAND [ARGUMENT...]
set -euo pipefail

[[ $(hostname) == vm ]] || {
  echo "rdma.sh: it is for the virtual machine: ./dev vm scripts/vm/rdma.sh COMMAND" >&2
  exit 2
}
modprobe rdma_rxe
ip link add dummy0 type dummy
ip addr add 10.9.0.1/24 dev dummy0
ip link set dummy0 mtu 1500 up
rdma link add rxe0 type rxe netdev dummy0
exec "$@"

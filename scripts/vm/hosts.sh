#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the virtual machine of `./dev vm`: makes COUNT hosts on one bridge and runs a command.
# Host I (from 0) has interface eI with address 10.9.0.(I+1), and soft-RoCE device rxeI on it; what
# the bridge sends to it passes vI, where netem loses packets. soft-RoCE of Linux 6.1 works in the
# first network namespace only. So all hosts are in it, and rules make the packets cross the bridge.
# There is one interface more, e(COUNT), with a device that ranks may use by UNISONO_VERBS_DEVICE.
# A process is on host I if /run/hosts/I/boot_id is mounted over the kernel's. `on_host.sh` does so.
# Usage: hosts.sh COUNT COMMAND [ARGUMENT...]
set -euo pipefail

[[ $(hostname) == vm ]] || {
  echo "hosts.sh: it is for the virtual machine: ./dev vm scripts/vm/hosts.sh COUNT COMMAND" >&2
  exit 2
}
count=$1
shift
modprobe -a rdma_rxe veth bridge sch_netem
sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.default.accept_local=1 \
  net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
  net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.default.arp_ignore=1 \
  net.ipv4.conf.all.arp_announce=2
ip link add br0 type bridge mcast_snooping 0
ip link set br0 up
# Otherwise packets to an address of this machine would never leave it.
ip rule add pref 32000 lookup local
ip rule del pref 0
for ((i = 0; i <= count; ++i)); do
  address=10.9.0.$((i + 1))
  ip link add "v$i" type veth peer name "e$i"
  ip link set "v$i" master br0 up
  ip addr add "$address/24" dev "e$i"
  ip link set "e$i" up
  ip rule add pref $((1000 + i)) iif "e$i" lookup local
  ip rule add pref $((2000 + i)) from "$address" to "$address" lookup local
  ip rule add pref $((3000 + i)) from "$address" lookup $((1000 + i))
  ip rule add pref $((4000 + i)) oif "e$i" lookup $((1000 + i))
  ip route add 10.9.0.0/24 dev "e$i" table $((1000 + i))
  ip route add 224.0.0.0/4 dev "e$i" table $((1000 + i))
  rdma link add "rxe$i" type rxe netdev "e$i"
  ((i < count)) || break
  mkdir -p "/run/hosts/$i"
  cat /proc/sys/kernel/random/uuid >"/run/hosts/$i/boot_id"
done
VM_HOSTS=$count exec "$@"

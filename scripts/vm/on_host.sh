#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the virtual machine, after hosts.sh: runs a command on one of the hosts.
# Usage: on_host.sh HOST COMMAND [ARGUMENT...]; HOST counts from 0.
set -euo pipefail

host=$1
shift
[[ -e /run/hosts/$host/boot_id ]] || {
  echo "on_host.sh: there is no host $host; hosts.sh makes them, from 0" >&2
  exit 2
}
export UNISONO_NETWORKS=e$host
# shellcheck disable=SC2016
exec unshare --mount --uts bash -c '
  hostname "h$0" && mount --bind "/run/hosts/$0/boot_id" /proc/sys/kernel/random/boot_id &&
    exec "$@"' "$host" "$@"

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the virtual machine, after hosts.sh: runs a command as all ranks of a job, which the hosts
# take in turn. The exit code is that of a rank that failed, or 0.
# Usage: job.sh RANKS COMMAND [ARGUMENT...]
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
ranks=$1
shift
hosts=$(find /run/hosts -mindepth 2 -name boot_id | wc -l)
export UNISONO_SIZE=$ranks UNISONO_RENDEZVOUS=tcp:10.9.0.1:7000 UNISONO_START_TIMEOUT=150s
UNISONO_JOB_KEY=$(cat /proc/sys/kernel/random/uuid)
export UNISONO_JOB_KEY
processes=()
for ((rank = 0; rank < ranks; ++rank)); do
  UNISONO_RANK=$rank "$here/on_host.sh" $((rank % hosts)) "$@" &
  processes+=($!)
done
code=0
for process in "${processes[@]}"; do wait "$process" || code=$?; done
exit "$code"

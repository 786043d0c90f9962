# SPDX-License-Identifier: BSD-3-Clause
"""Makes hosts lose datagrams: a filter at each host's eth0 drops a share of the UDP packets of IPv4
that arrive, each receiver on its own. TCP, which the rendezvous uses, is not affected.

The filter is a classic BPF program, which every kernel with CONFIG_NET_CLS_BPF takes; netem and
the random action of tc are often not built. It needs tc (Debian: iproute2).
"""

from host_set import Failed

# (operation, jump if true, jump if false, operand), as tc takes them. To drop is 2, to pass 0.
LOAD_ETHERTYPE = (40, 0, 0, 12)
LOAD_PROTOCOL = (48, 0, 0, 23)
LOAD_RANDOM = (32, 0, 0, 0xFFFFF038)
PASS = (6, 0, 0, 0)
DROP = (6, 0, 0, 2)
IPV4, UDP = 0x800, 17


def program(share):
    """The filter that drops this share, from 0 to 1."""
    below = min(int(share * 2**32), 2**32 - 1)
    lines = [
        LOAD_ETHERTYPE,
        (21, 0, 4, IPV4),  # anything else: pass
        LOAD_PROTOCOL,
        (21, 0, 2, UDP),
        LOAD_RANDOM,
        (53, 0, 1, below),  # at least: pass
        PASS,
        DROP,
    ]
    words = [" ".join(map(str, line)) for line in lines]
    return ",".join([str(len(lines)), *words])


def lose(host_set, share):
    """From now on every host loses this share of what arrives; 0: nothing more."""
    for host in range(host_set.count):
        on_host(host_set, host, ["qdisc", "replace", "dev", "eth0", "clsact"])
        where = ["dev", "eth0", "ingress", "pref", "1", "handle", "1", "protocol", "all"]
        words = ["filter", "replace", *where, "bpf", "da", "bytecode", program(share)]
        on_host(host_set, host, words)


def on_host(host_set, host, words):
    process = host_set.start(host, ["tc", *words])
    _, error = process.communicate()
    if process.returncode != 0:
        raise Failed(f"this kernel does not drop packets at random: tc {' '.join(words)}: {error}")

# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that leave without destroy_process_group(), each by the end of its interpreter.

usage: leaving.py CASE STORE GRACE [fork|spawn]

Forks two ranks, which run the case and end as any program ends. Prints what they print, and their
exit statuses. GRACE: seconds that operations have at the end. With a start method each rank runs
the case in a child of multiprocessing.
"""

import concurrent.futures
import datetime
import multiprocessing
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
import unisono.torch

unisono.torch._GRACE = float(sys.argv[3])
torch.set_num_threads(1)  # before a fork there must be no other threads
LIMIT = datetime.timedelta(seconds=120)
RANKS = 2


def say(text):
    os.write(1, f"{dist.get_rank()}: {text}\n".encode())


def try_to_add():
    """At rank 1, when rank 0 has left."""
    try:
        for _ in range(2):  # the first may have all that it needs of rank 0
            dist.all_reduce(torch.ones(4))
        say("no error")
    except dist.DistBackendError as error:
        say(f"error that names rank 0: {'rank 0' in str(error)}")


def completes(_):
    """An operation that all start and nobody waits for."""
    return dist.all_reduce(torch.ones(1_000_000), async_op=True)


def stays(wait_for_rank_0):
    """One that only rank 0 starts."""
    if dist.get_rank() == 0:
        return dist.all_reduce(torch.ones(4), async_op=True)
    wait_for_rank_0()
    try_to_add()


def fails(wait_for_rank_0):
    """The same, at a rank that an exception ends."""
    work = stays(wait_for_rank_0)
    if dist.get_rank() == 0:
        raise ValueError("of the program", work)


def calls_back(wait_for_rank_0):
    """The same, with a function of Python that waits for it."""
    work = stays(wait_for_rank_0)
    if dist.get_rank() == 0:
        return work.get_future().then(lambda _: None)


def wait_until_asleep(thread):
    """Until a thread sleeps that does not wait for the interpreter, which is free meanwhile. A
    daemon thread in a function of torch itself would abort the process at its end."""
    looks = 0
    while looks < 50:
        time.sleep(0.002)
        with open(f"/proc/self/task/{thread.native_id}/stat", encoding="ascii") as file:
            state = file.read().rpartition(")")[2].split()[0]
        looks = looks + 1 if state == "S" else 0


def is_in_a_thread(wait_for_rank_0, waits=False):
    """A blocking call of a daemon thread, or its wait for an operation."""
    if dist.get_rank() == 1:
        wait_for_rank_0()
        return try_to_add()
    has_begun = threading.Event()

    def call():
        tensor = torch.ones(4)
        has_begun.set()
        try:
            work = dist.all_reduce(tensor, async_op=waits)
            if waits:
                work.wait()
        except dist.DistBackendError:
            pass

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    has_begun.wait()
    wait_until_asleep(thread)


def sends(wait_for_rank_0):
    """Messages that are received when their sender is at its end, short and long."""
    works = []
    for length in (10, 1_000_000):
        tensor = torch.zeros(length)
        if dist.get_rank() == 0:
            works.append(dist.isend(tensor + 1, 1))
        else:
            dist.recv(tensor, 0)
            say(f"received {tensor.sum().item():.0f}")
    return works


def receives(_):
    """Receives that nobody sends for."""
    peer = 1 - dist.get_rank()
    works = [dist.irecv(torch.ones(4), peer)]
    if os.environ.get("TORCH_UNISONO") != "python":
        works.append(dist.irecv(torch.ones(4)))
    return works


def has_groups(_):
    """An operation in each of several groups, of one rank only."""
    groups = [dist.new_group() for _ in range(3)]
    if dist.get_rank() == 0:
        return [dist.all_reduce(torch.ones(4), group=group, async_op=True) for group in groups]


pool = concurrent.futures.ThreadPoolExecutor(1)


def has_a_pool(wait_for_rank_0):
    """As sends(), by a thread that waits for more to do."""
    pool.submit(int).result()
    return pool.submit(sends, wait_for_rank_0)


def waits_in_a_thread(wait_for_rank_0):
    return is_in_a_thread(wait_for_rank_0, waits=True)


CASES = {case.__name__: case for case in (completes, stays, fails, calls_back, is_in_a_thread,
                                          waits_in_a_thread, sends, receives, has_groups,
                                          has_a_pool)}
kept = []  # until the end


def begin(case, wait_for_rank_0):
    rank = int(os.environ["RANK"])
    dist.init_process_group("unisono", store=dist.FileStore(sys.argv[2], RANKS), rank=rank,
                            world_size=RANKS, timeout=LIMIT)
    dist.barrier()
    kept.append(case(wait_for_rank_0))


def run_in_child(method, case, wait_for_rank_0):
    context = multiprocessing.get_context(method)
    has_rank_0_left = context.Event()
    child = context.Process(target=begin, args=(case, has_rank_0_left.wait))
    child.start()
    if os.environ["RANK"] == "1":
        wait_for_rank_0()
        has_rank_0_left.set()
    child.join()
    os.write(1, f"child: {child.exitcode}\n".encode())


def main():
    case = CASES[sys.argv[1]]
    reader, writer = os.pipe()
    children = []
    for rank in range(RANKS):
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = str(rank)
            os.close(reader if rank == 0 else writer)
            wait_for_rank_0 = lambda: os.read(reader, 1)  # noqa: E731
            if len(sys.argv) > 4:
                run_in_child(sys.argv[4], case, wait_for_rank_0)
            else:
                begin(case, wait_for_rank_0)
            return
        children.append(child)
    os.close(writer)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.write(1, f"statuses {statuses}\n".encode())


if __name__ == "__main__":
    main()

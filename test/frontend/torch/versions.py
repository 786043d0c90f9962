# SPDX-License-Identifier: BSD-3-Clause
"""Parts of torch that tests use, and that not each version has that the back end supports."""

import torch
import unisono.torch

VERSION = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
# Before, only ProcessGroup has them, and calls the back end.
HAS_SINGLE_COALESCED = VERSION >= (2, 14)
SHRINKS = VERSION >= (2, 10)
# Before, for Gloo only.
HAS_MONITORED_BARRIER = VERSION >= (2, 14)
# Before, only groups that are bound to a GPU.
SPLITS_GROUPS_OF_CPUS = VERSION >= (2, 15)
# Before, only NCCL's.
NOTES_CALLS = VERSION >= (2, 15)
HAS_PYTHON_BACK_ENDS = unisono.torch.takes_python_back_ends()

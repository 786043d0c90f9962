# SPDX-License-Identifier: BSD-3-Clause
"""A test that hangs ends with the stacks of all threads, before the limit of the whole run. With a
torch that takes no back end in Python, its tests are skipped."""

import faulthandler

import pytest
import versions

SECONDS = 300


@pytest.fixture(autouse=True)
def stacks_of_a_hang():
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(items):
    if versions.HAS_PYTHON_BACK_ENDS:
        return
    for item in items:
        parameters = getattr(item, "callspec", None)
        if (item.path.stem == "test_python_back_end"
                or parameters is not None and "python" in parameters.params.values()):
            item.add_marker(pytest.mark.skip(reason="this torch takes no back end in Python"))

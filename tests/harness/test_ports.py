"""The ports of the tests' servers."""

from __future__ import annotations

import subprocess
import sys

from tests.harness.ports import free_port

CHOOSE_FROM = """
import itertools, sys
from tests.harness import ports
ports._offsets = itertools.count(int(sys.argv[1]) - ports._FIRST)
print(ports.free_port())
"""


def test_another_process_that_would_choose_the_same_port_gets_another() -> None:
    mine = free_port()
    other = subprocess.run([sys.executable, "-c", CHOOSE_FROM, str(mine)], capture_output=True, text=True, check=True)
    assert int(other.stdout) != mine

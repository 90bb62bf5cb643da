"""The debugging pipe of a process that has already exited."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from tabhub.errors import PipeClosedError
from tabhub.links.launch.debugging_pipe import DebuggingPipe
from tests.harness.waiting import until


async def test_a_request_to_a_browser_that_has_exited_fails_as_a_closed_pipe() -> None:
    process = await asyncio.create_subprocess_exec("/bin/true", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    await process.wait()
    await until(stdin.is_closing)
    pipe = DebuggingPipe(stdout, stdin)
    with pytest.raises(PipeClosedError):
        await pipe.request("Browser.getVersion")
    pipe.close()

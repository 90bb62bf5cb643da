"""`tabhub start --stdio`: MCP on stdin and stdout, relayed to the running hub; one is started if none runs.

Owns the process's stdio: lines in, lines out, and nothing but JSON-RPC on stdout. The messages are the bridge's.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Sequence

from tabhub.cli.background import ensure_running
from tabhub.cli.bridge import Bridge

MAX_LINE = 16 * 1024 * 1024
_READ = 262144


def run_bridge(words: Sequence[str], *, gateway: bool) -> int:
    """Relay until the client closes stdin."""
    # Whatever prints by mistake goes to stderr; the protocol has a descriptor of its own.
    out = os.dup(1)
    os.dup2(2, 1)
    ensure_running(words)
    return asyncio.run(_relay(out, "/mcp/gateway" if gateway else "/mcp"))


async def _relay(out: int, path: str) -> int:
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)

    def write(message: bytes) -> None:
        data = memoryview(message + b"\n")
        try:
            while data:
                data = data[os.write(out, data) :]
        except OSError:
            stop()  # the client has closed its end

    bridge = Bridge(write, path=path)
    lines: asyncio.Queue[bytes | int | None] = asyncio.Queue(maxsize=64)
    threading.Thread(target=_read_lines, args=(loop, lines), daemon=True, name="stdin").start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    reader = loop.create_task(_serve(bridge, lines))
    await asyncio.wait([reader, stopped], return_when=asyncio.FIRST_COMPLETED)
    if reader.done():
        reader.result()
        await bridge.finish()
    else:
        reader.cancel()
        await bridge.stop()
    return 0


async def _serve(bridge: Bridge, lines: asyncio.Queue[bytes | int | None]) -> None:
    while (line := await lines.get()) is not None:
        if isinstance(line, int):
            bridge.too_long(line)
        else:
            await bridge.line(line)


def _read_lines(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | int | None]) -> None:
    """Read stdin in a thread, which works for pipes, files and terminals alike; None marks its end.

    os.read, not sys.stdin: a buffered reader in a waiting thread would stop the interpreter from ending.
    """

    def put(item: bytes | int | None) -> None:
        asyncio.run_coroutine_threadsafe(lines.put(item), loop).result()

    try:
        pending, dropping = bytearray(), False
        while data := os.read(0, _READ):
            *complete, rest = data.split(b"\n")
            for part in complete:
                if not dropping:
                    put(bytes(pending + part))
                pending.clear()
                dropping = False
            if not dropping:
                pending += rest
            if len(pending) > MAX_LINE:
                put(MAX_LINE)
                pending.clear()
                dropping = True
        if pending:
            put(bytes(pending))
        put(None)
    except RuntimeError:
        return  # the loop has ended first
    except OSError as error:
        print(f"tabhub: stdin cannot be read: {error.strerror}", file=sys.stderr)
        put(None)

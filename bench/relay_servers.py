"""The servers the relay's benchmarks measure: a relay, and bare WebSocket echoes.

Owns how they are started. Both echoes only return each text message. One is uvicorn with its default WebSockets; the
other uses the relay's sockets, which pass messages on without a queue and a task for each.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

from bench.processes import Child, free_port
from tabhub.trust.jwt import Rules, issue, read_keys

ECHO = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", ws="websockets-sansio", lifespan="off",
            log_level="error", ws_per_message_deflate=False, ws_ping_interval=None)
"""
OWN_ECHO = """
import asyncio, socket, sys
from tabhub.errors import NotFound
from tabhub.http.messages import error_response
from tabhub.http.server import HttpServer
from tabhub.platform.event_loop import new_event_loop
from tabhub.http.websocket import WebSocket, WebSocketRoute
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS

class Echo:
    def __init__(self, connection): self.receive = connection.send_text
    def receive_binary(self): pass
    def overflow(self): pass
    def closed(self, reason): pass

class App:
    def route(self, request): raise NotFound("There are only WebSockets here.")
    def refusal(self, request, error): return error_response(error)
    def websocket(self, request): return WebSocketRoute(None, lambda upgrade: WebSocket(upgrade, Echo, 1 << 24))

async def serve():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    await HttpServer(App(), DEFAULTS, WriteBatch()).start([listener])
    await asyncio.Event().wait()

asyncio.Runner(loop_factory=new_event_loop).run(serve())
"""


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


class Relay:
    """A relay process and its tokens; with a bus, one node of several."""

    def __init__(self, where: Path, port: int, *words: str) -> None:
        key = where / "relay.key"
        key.write_text("0123456789abcdef" * 4)
        self._key = read_keys(key.read_bytes())[0]
        self.port = port
        options = ["--port", str(port), "--key-file", str(key), "--client-rate", "0", "--user-rate", "0", *words]
        self.child = Child([sys.executable, "-m", "tabhub", "relay", "start", *options], log=where / f"{port}.log")
        self.child.wait_until(lambda: listens(port), "the relay")

    def token(self, user: str) -> str:
        return issue(self._key, user, now=time.time(), ttl=3600, token_id=user, rules=Rules())


class Echo:
    """A bare WebSocket echo in its own process."""

    def __init__(self, where: Path, name: str, source: str) -> None:
        self.name, self.port = name, free_port()
        script = where / f"{name}.py"
        script.write_text(source)
        self.child = Child([sys.executable, str(script), str(self.port)], log=where / f"{name}.log")
        self.child.wait_until(lambda: listens(self.port), name)

"""`tabhub relay start` and `tabhub relay status`: their options and texts. Serving is `tabhub.relay.run`'s."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from tabhub.cli.command import JSON, Command, option, port, whole
from tabhub.cli.relay.token import KEY_FILE, REVOKED_FILE, token_rules
from tabhub.cli.terminal import count, duration, paint, print_json
from tabhub.client_errors import CliError, HttpError, UsageError
from tabhub.net import http_client


def start(args: Namespace) -> int:
    """The options of the command are the fields of RelayOptions, by name; the rates override limits of config.json."""
    from tabhub.limits import Limits
    from tabhub.relay.run import RelayOptions, serve
    from tabhub.store import config_file
    from tabhub.store.home import Home

    options = vars(args)
    rates = {f"relay_{name}": options.pop(name) for name in ("client_rate", "user_rate")}
    given = {name: value for name, value in rates.items() if value is not None}

    def read_limits() -> Limits:
        return replace(config_file.load(Home.find()).limits, **given)

    return serve(RelayOptions(**options, limits=read_limits(), read_limits=read_limits, on_ready=_greet))


def _greet(url: str, admin_url: str | None) -> None:
    print(f"The relay is running on {paint(url, 'cyan')}")
    print(f"  browsers connect to {url}/extension")
    print(f"  agents connect to   {url}/mcp, MCP clients to {url.replace('ws', 'http', 1)}/mcp")
    if admin_url is not None:
        print(f"  status and metrics  {admin_url}/status, {admin_url}/metrics")
    sys.stdout.flush()


def status(args: Namespace) -> int:
    try:
        answer = http_client.request("GET", args.host, args.port, "/status", headers={}, timeout=5)
        facts = json.loads(answer.body)
    except (HttpError, ValueError) as error:
        raise UsageError(
            f"No relay answers on {args.host}:{args.port}: {error}.",
            f"Start one: tabhub relay start --port PORT --admin-port {args.port} --key-file FILE",
        ) from None
    if answer.status != 200 or not isinstance(facts, dict) or "counts" not in facts:
        raise CliError(
            f"The server on {args.host}:{args.port} does not report the status of a relay (HTTP {answer.status}).",
            "Give the port of `relay start --admin-port`. For a hub, use `tabhub status`.",
        )
    if args.json:
        print_json(facts)
        return 0 if facts["ready"] else 1
    ready = "ready" if facts["ready"] else "not ready: " + ", ".join(facts["reasons"])
    if facts.get("degraded"):
        ready += "; degraded: " + ", ".join(facts["degraded"])
    print(f"Relay node {facts['node']}, version {facts['version']}, up {duration(facts['uptime'])}: {ready}")
    nouns = {"browsers": "browser", "agents": "agent", "users": "user", "connections": "connection"}
    nouns |= {"engines": "engine", "callsInFlight": "running call"}
    print("  " + ", ".join(count(facts[name], noun) for name, noun in nouns.items() if facts.get(name) is not None))
    for name, number in facts["counts"].items():
        if number:
            print(f"  {name.replace('_', ' ')}: {number}")
    return 0 if facts["ready"] else 1


START = Command(
    start,
    option("--host", metavar="ADDRESS", default="127.0.0.1", help="where it listens (default: 127.0.0.1)"),
    option("--port", metavar="PORT", type=port, required=True, help="its port; 0 takes any free one"),
    KEY_FILE,
    option("--jwks-url", metavar="URL", help="URL of the published keys (JWKS); reloaded when they change"),
    REVOKED_FILE,
    option("--bus", metavar="URL", help="nats://… joins this node with others (default: alone)"),
    option("--tls-cert", metavar="FILE", type=Path, help="certificate chain, PEM"),
    option("--tls-key", metavar="FILE", type=Path, help="its private key, PEM"),
    option("--behind-proxy", action="store_true", help="a reverse proxy terminates TLS"),
    option(
        "--admin-host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="where status and metrics are served (default: 127.0.0.1); never publish it",
    ),
    option("--admin-port", metavar="PORT", type=port, help="their port (default: they are not served)"),
    option("--public-url", metavar="URL", help="how MCP clients reach it, e.g. https://relay.example.com"),
    option(
        "--auth-server",
        dest="auth_servers",
        metavar="URL",
        action="append",
        default=[],
        help="an OAuth server that issues tokens, announced to clients; may be repeated",
    ),
    option("--audit-file", metavar="FILE", type=Path, help="audit log of tool calls over HTTP (default: none)"),
    option("--client-rate", metavar="N", type=whole, help="messages per minute and connection (0: no limit)"),
    option("--user-rate", metavar="N", type=whole, help="messages per minute and user (0: no limit)"),
    token_rules,
    examples=(
        ("tabhub relay start --port 9700 --key-file relay.key", "on this machine"),
        ("tabhub relay start --host 0.0.0.0 --port 443 --tls-cert crt --tls-key key …", "for others"),
    ),
)
STATUS = Command(
    status,
    option("--host", metavar="ADDRESS", default="127.0.0.1", help="its --admin-host (default: 127.0.0.1)"),
    option("--port", metavar="PORT", type=port, required=True, help="its --admin-port"),
    JSON,
)

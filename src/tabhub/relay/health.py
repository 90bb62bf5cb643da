"""What a relay node says of itself: alive, ready, its figures and its metrics.

Owns those answers. Alive and ready are for anyone; figures and metrics are for callers on the node's own network that
did not come through a proxy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from ipaddress import ip_address
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tabhub import __version__
from tabhub.relay.node import Node

_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
_COUNTERS = {
    "forwarded": "Requests passed on to browsers",
    "answered": "Answers passed on to agents",
    "failed": "Requests that ended without a browser's answer",
    "notices": "Notifications passed on",
    "late": "Late or doubled answers, dropped",
    "foreign": "Answers to nobody's request, dropped",
    "malformed": "Messages that are none",
    "rate_limited": "Messages refused for being too many",
    "timed_out": "Requests no browser answered in time",
    "auth_failed": "Tokens refused",
    "authenticated": "Clients let in",
    "replaced": "Browsers that connected anew",
    "expired": "Connections ended for want of a valid token",
    "node_messages": "Messages of other nodes",
}


def near(client: Any, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request comes from this machine or its private network, and not through a proxy."""
    try:
        address = ip_address(client[0])
    except (TypeError, ValueError, IndexError):
        return False
    return address.is_private and not any(name in _FORWARDED for name, _ in headers)


def readiness(node: Node) -> dict[str, Any]:
    """Whether new clients should be sent here, and why not."""
    reasons = []
    if node.closing:
        reasons.append("shutting down")
    if not node.bus.healthy:
        reasons.append("the bus is unavailable")
    if not node.keyring.keys:
        reasons.append("there is no key to verify tokens with")
    return {"ready": not reasons, "reasons": reasons}


def figures(node: Node, uptime: float) -> dict[str, Any]:
    """How many are here, and what was counted."""
    tables = node.state.tables
    return {
        "version": __version__,
        "node": node.bus.node,
        "uptime": round(uptime, 1),
        **readiness(node),
        "bus": {"healthy": node.bus.healthy},
        "users": len(tables.users),
        "agents": len(tables.agents),
        "browsers": len(tables.browsers),
        "connections": len(tables.connections),
        "engines": node.engines,
        "callsInFlight": sum(len(connection.pending) for connection in tables.connections.values()),
        "revoked": len(node.revocations),
        "counts": asdict(tables.counts),
    }


class _Collector:
    """Reads the numbers when they are asked for, so that counting costs nothing else."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterable[Metric]:
        """All families."""
        tables = self._node.state.tables
        counts = asdict(tables.counts)
        for name, doc in _COUNTERS.items():
            yield CounterMetricFamily(f"tabhub_relay_{name}", doc, value=counts[name])
        in_flight = sum(len(connection.pending) for connection in tables.connections.values())
        gauges = {
            "users": ("Users with someone here", len(tables.users)),
            "agents": ("Connected agents", len(tables.agents)),
            "browsers": ("Connected browsers", len(tables.browsers)),
            "connections": ("Agents connected to a browser", len(tables.connections)),
            "engines": ("Agents over HTTP, each with an engine", self._node.engines),
            "calls_in_flight": ("Requests without an answer yet", in_flight),
            "sockets": ("Open connections, those of engines included", self._node.clients),
            "revoked_tokens": ("Revoked tokens kept in mind", len(self._node.revocations)),
            "bus_healthy": ("Whether other nodes can be reached", int(self._node.bus.healthy)),
            "ready": ("Whether new clients can be served", int(self._node.ready)),
        }
        for name, (doc, value) in gauges.items():
            yield GaugeMetricFamily(f"tabhub_relay_{name}", doc, value=value)


def metrics(node: Node) -> bytes:
    """The whole page of metrics."""
    registry = CollectorRegistry()
    registry.register(_Collector(node))
    ProcessCollector(registry=registry)
    return generate_latest(registry)

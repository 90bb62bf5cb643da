"""Health of a relay node: readiness, status and Prometheus metrics.

Owns the content of these replies. Liveness and readiness are public; status and metrics are for callers on the node's
own network that do not come through a proxy.
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
    "forwarded": "Requests forwarded to browsers",
    "answered": "Replies forwarded to agents",
    "failed": "Requests that ended without a reply of the browser",
    "notices": "Notifications forwarded",
    "late": "Late or duplicate replies, dropped",
    "foreign": "Replies that match no request, dropped",
    "malformed": "Malformed messages",
    "rate_limited": "Messages rejected by a rate limit",
    "timed_out": "Requests not answered in time",
    "auth_failed": "Tokens rejected",
    "authenticated": "Clients authenticated",
    "replaced": "Browser connections replaced by a newer one",
    "expired": "Connections closed without a valid token",
    "node_messages": "Messages from other nodes",
}


def near(peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request comes directly from this machine or its private network, not through a proxy."""
    try:
        address = ip_address(peer or "")
    except ValueError:
        return False
    return address.is_private and not any(name in _FORWARDED for name, _ in headers)


def readiness(node: Node) -> dict[str, Any]:
    """Whether a load balancer should send new clients here, and why not."""
    reasons = []
    if node.closing:
        reasons.append("shutting down")
    if not node.bus.healthy:
        reasons.append("the bus is unavailable")
    if not node.keyring.keys:
        reasons.append("no key to verify tokens with")
    return {"ready": not reasons, "reasons": reasons}


def figures(node: Node, uptime: float) -> dict[str, Any]:
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
    """Reads the counters on demand, so that counting itself stays cheap."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterable[Metric]:
        tables = self._node.state.tables
        counts = asdict(tables.counts)
        for name, doc in _COUNTERS.items():
            yield CounterMetricFamily(f"tabhub_relay_{name}", doc, value=counts[name])
        in_flight = sum(len(connection.pending) for connection in tables.connections.values())
        gauges = {
            "users": ("Users with connected clients", len(tables.users)),
            "agents": ("Connected agents", len(tables.agents)),
            "browsers": ("Connected browsers", len(tables.browsers)),
            "connections": ("Agents connected to a browser", len(tables.connections)),
            "engines": ("Engines, one per agent over HTTP", self._node.engines),
            "calls_in_flight": ("Pending requests", in_flight),
            "sockets": ("Open connections, including those of engines", self._node.clients),
            "revoked_tokens": ("Known revoked tokens", len(self._node.revocations)),
            "bus_healthy": ("Whether other nodes can be reached", int(self._node.bus.healthy)),
            "ready": ("Whether the node is ready for new clients", int(self._node.ready)),
        }
        for name, (doc, value) in gauges.items():
            yield GaugeMetricFamily(f"tabhub_relay_{name}", doc, value=value)


def metrics(node: Node) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Collector(node))
    ProcessCollector(registry=registry)
    return generate_latest(registry)

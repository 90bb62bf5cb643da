"""Health of a relay node: readiness, status and Prometheus metrics.

Owns the content of these replies. Liveness and readiness are public; status and metrics are for the operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from ipaddress import ip_address
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tabhub import __version__
from tabhub.relay.node import Node
from tabhub.relay.records import Counts


def near(peer: str | None) -> bool:
    """Whether a connection comes from this machine or its private network."""
    try:
        address = ip_address(peer or "")
    except ValueError:
        return False
    # A socket for both families reports IPv4 addresses as IPv6 ones, all of which count as private.
    return (getattr(address, "ipv4_mapped", None) or address).is_private


def readiness(node: Node) -> dict[str, Any]:
    """Whether a load balancer should send new clients here, why not, and what does not work although it should.

    Without the bus a node serves the clients it has: all nodes lose it together, and somebody must serve them.
    """
    obstacles = {"shutting down": node.draining, "no key to verify tokens with": not node.keyring.keys}
    reasons = [reason for reason, applies in obstacles.items() if applies]
    degraded = [] if node.bus.healthy else ["the bus is unavailable: browsers on other nodes cannot be reached"]
    if node.revocations.refused:
        degraded.append(f"{node.revocations.refused} revoked tokens are not refused: the list is full (relay_revoked)")
    return {"ready": not reasons, "reasons": reasons, "degraded": degraded}


def figures(node: Node, engines: int) -> dict[str, Any]:
    tables = node.state.tables
    return {
        "version": __version__,
        "node": node.bus.node,
        "uptime": round(node.clock() - node.started, 1),
        **readiness(node),
        "bus": {"healthy": node.bus.healthy},
        "users": len(tables.users),
        "agents": len(tables.agents),
        "browsers": len(tables.browsers),
        "connections": len(tables.connections),
        "engines": engines,
        "callsInFlight": sum(len(connection.pending) for connection in tables.connections.values()),
        "revoked": len(node.revocations),
        "notRevoked": node.revocations.refused,
        "counts": asdict(tables.counts),
    }


@dataclass(slots=True, eq=False)
class _Collector:
    """Metrics of these figures."""

    facts: dict[str, Any]
    sockets: int
    buffered: int

    def collect(self) -> Iterable[Metric]:
        facts = self.facts
        for counter in fields(Counts):
            value, doc = facts["counts"][counter.name], counter.metadata["doc"]
            yield CounterMetricFamily(f"tabhub_relay_{counter.name}", doc, value=value)
        gauges = {
            "users": ("Users with connected clients", facts["users"]),
            "agents": ("Connected agents", facts["agents"]),
            "browsers": ("Connected browsers", facts["browsers"]),
            "connections": ("Agents connected to a browser", facts["connections"]),
            "engines": ("Engines, one per agent over HTTP", facts["engines"]),
            "calls_in_flight": ("Pending requests", facts["callsInFlight"]),
            "buffered_bytes": ("Bytes that wait for clients to read them, and of incomplete messages", self.buffered),
            "sockets": ("Open connections, including those of engines", self.sockets),
            "revoked_tokens": ("Known revoked tokens", facts["revoked"]),
            "revocations_refused": ("Revoked tokens that the full list has not taken", facts["notRevoked"]),
            "bus_healthy": ("Whether other nodes can be reached", int(facts["bus"]["healthy"])),
            "ready": ("Whether the node is ready for new clients", int(facts["ready"])),
            "degraded": ("Whether a part of the service does not work", int(bool(facts["degraded"]))),
        }
        for name, (doc, value) in gauges.items():
            yield GaugeMetricFamily(f"tabhub_relay_{name}", doc, value=value)


def metrics(node: Node, engines: int) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Collector(figures(node, engines), len(node.sockets), node.fair_share.total_buffered))
    ProcessCollector(registry=registry)
    return generate_latest(registry)

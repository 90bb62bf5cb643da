"""The deployment files: valid, and consistent with the command line and with each other."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import crossplane  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tabhub.cli import main
from tabhub.limits import DEFAULTS
from tabhub.relay import run
from tabhub.relay.bus.interface import VARIABLE, Bus
from tabhub.relay.draining import REFUSE_AFTER
from tabhub.relay.health import metrics
from tabhub.relay.keyring import KEY_VARIABLE, Keyring
from tabhub.relay.node import Node
from tabhub.relay.run import RelayOptions, check_transport
from tests.relay.world import SECRET

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_PATHS = ("/extension", "/mcp", "/.well-known/oauth-protected-resource")


def unit(name: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "systemd" / name)
    return parser


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def manifests() -> list[dict[str, Any]]:
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text())]


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = [m for m in manifests() if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


def container() -> dict[str, Any]:
    found: dict[str, Any] = manifest("Deployment", "tabhub-relay")["spec"]["template"]["spec"]["containers"][0]
    return found


def commands() -> dict[str, list[str]]:
    """The words after `tabhub` in each way to run a node."""
    started = unit("tabhub-relay.service")["Service"]["ExecStart"].replace("$RELAY_OPTIONS", "--bus nats://n:4222")
    last = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")][-1]
    return {
        "systemd": shlex.split(started)[1:],
        "compose": compose()["services"]["relay-1"]["command"],
        "kubernetes": container()["args"],
        "image": [*json.loads(last.removeprefix("CMD ")), "--key-file", "/key"],
    }


@pytest.mark.parametrize("way", ["systemd", "compose", "kubernetes", "image"])
def test_every_deployment_uses_options_of_the_command_line(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[RelayOptions] = []

    def serve(options: RelayOptions) -> int:
        check_transport(options)
        started.append(options)
        return 0

    monkeypatch.setattr(run, "serve", serve)
    assert main(commands()[way]) == 0
    (options,) = started
    assert options.port == 9700
    assert options.behind_proxy
    assert options.key_file is not None
    if way != "image":
        assert options.revoked_file is not None
        assert options.bus is not None
        assert run.make_bus(options.bus, "n").node == "n"
        assert options.admin_port == 9790


def test_metrics_are_scraped_at_the_admin_port_which_is_not_published() -> None:
    scraped = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"] == [{"targets": ["relay-1:9790", "relay-2:9790"]}]
    annotations = manifest("Deployment", "tabhub-relay")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == "9790"
    (port,) = manifest("Service", "tabhub-relay")["spec"]["ports"]
    assert port["targetPort"] == "ws"
    assert "9790" not in (DEPLOY / "Caddyfile").read_text() + (DEPLOY / "nginx.conf").read_text()


def test_systemd_units_are_complete_and_the_relays_is_sandboxed() -> None:
    for name in ("tabhub.service", "tabhub-relay.service"):
        found = unit(name)
        assert set(found.sections()) == {"Unit", "Service", "Install"}
        assert found["Service"]["NoNewPrivileges"] == "yes"
    service = unit("tabhub-relay.service")["Service"]
    assert service["DynamicUser"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert "relay.key:" in service["LoadCredential"]
    assert unit("tabhub.service")["Service"]["ExecStart"].endswith("tabhub start")


def test_the_compose_file_is_valid_and_does_not_publish_the_bus() -> None:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*words, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    services = compose()["services"]
    assert {"relay-1", "relay-2", "nats", "caddy"} == set(services)
    assert [name for name, service in services.items() if "ports" in service] == ["caddy"]
    assert services["nats"]["networks"] == ["inside"]
    assert compose()["networks"]["inside"]["internal"] is True
    assert VARIABLE in services["relay-1"]["environment"]
    assert services["caddy"]["environment"]["RELAY_NODES"].split() == ["relay-1:9700", "relay-2:9700"]


def test_the_manifests_are_valid_and_consistent() -> None:
    for each in manifests():
        kubernetes_validate.validate(each, "1.30", strict=True)
    relay, service = manifest("Deployment", "tabhub-relay"), manifest("Service", "tabhub-relay")
    labels = relay["spec"]["template"]["metadata"]["labels"]
    assert relay["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert container()["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container()["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert VARIABLE in [env["name"] for env in container()["env"]]
    assert f"nats://{manifest('Service', 'tabhub-nats')['metadata']['name']}:4222" in container()["args"]
    pod = manifest("Deployment", "tabhub-relay")["spec"]["template"]["spec"]
    waits = int(container()["lifecycle"]["preStop"]["exec"]["command"][-1])
    drains = REFUSE_AFTER + DEFAULTS.relay_drain + run._GRACE
    assert pod["terminationGracePeriodSeconds"] >= waits + drains
    assert int(compose()["services"]["relay-1"]["stop_grace_period"].removesuffix("s")) > drains
    assert int(unit("tabhub-relay.service")["Service"]["TimeoutStopSec"]) > drains
    (allowed,) = manifest("NetworkPolicy", "tabhub-nats")["spec"]["ingress"]
    assert allowed["from"][0]["podSelector"]["matchLabels"] == labels
    placed = manifest("Ingress", "tabhub-relay")["metadata"]["annotations"]
    assert not [name for name in placed if "hash" in name or "affinity" in name]
    assert placed["nginx.ingress.kubernetes.io/load-balance"] == "round_robin"
    paths = manifest("Ingress", "tabhub-relay")["spec"]["rules"][0]["http"]["paths"]
    assert [path["path"] for path in paths] == list(_PATHS)


def test_nats_accepts_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_TOKEN", "x" * 32)
    inline = tmp_path / "inline.conf"
    inline.write_text(manifest("ConfigMap", "tabhub-nats")["data"]["nats.conf"])
    server = Path(sysconfig.get_path("scripts")) / "nats-server"
    for file in (DEPLOY / "nats.conf", inline):
        done = subprocess.run([server, "-t", "-c", file], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_nginx_configuration_is_valid(tmp_path: Path) -> None:
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"events {{}}\nhttp {{ include {DEPLOY / 'nginx.conf'}; }}\n")
    read = crossplane.parse(str(whole))
    assert read["status"] == "ok", read["errors"]
    (server,) = [block for block in read["config"][1]["parsed"] if block["directive"] == "server"]
    (place,) = [b for b in server["block"] if b["directive"] == "location" and b["args"][0] == "~"]
    pattern = re.compile(place["args"][1])
    assert all(pattern.match(path) for path in (*_PATHS, "/healthz"))
    assert not any(pattern.match(path) for path in ("/metrics", "/status", "/readyz", "/extensions"))
    parsed = read["config"][1]["parsed"]
    (upstream,) = [block for block in parsed if block["directive"] == "upstream"]
    assert ["hash", "$tabhub_place", "consistent"] in [[b["directive"], *b["args"]] for b in upstream["block"]]
    (chosen,) = [block for block in parsed if block["args"][-1:] == ["$tabhub_place"]]
    assert chosen["args"] == [
        "$http_authorization",
        "$tabhub_place",
    ]
    directives = {b["directive"] + " " + b["args"][0]: b["args"] for b in place["block"]}
    assert directives["proxy_set_header Upgrade"] == ["Upgrade", "$http_upgrade"]
    assert "proxy_set_header X-Forwarded-For" in directives


def test_the_caddyfile_is_balanced_and_forwards_only_public_paths() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    depth = 0
    for line in text.splitlines():
        words = line.split("#")[0].split()
        depth += words[-1:] == ["{"]
        depth -= words == ["}"]
        assert depth >= 0, line
    assert depth == 0
    (matched,) = [line.split()[2:] for line in text.splitlines() if line.strip().startswith("@relay path")]
    assert set(_PATHS) <= set(matched)
    assert not {"/metrics", "/status", "/*"} & set(matched)
    assert "request>headers>Authorization delete" in text
    assert "lb_policy header Authorization\n" in text


def _metric_names() -> set[str]:
    node = Node(Bus("n"), Keyring(env={KEY_VARIABLE: SECRET}, clock=lambda: 0.0), limits=RelayOptions(0).limits)
    return set(re.findall(r"^(\w+)(?:\{| )", metrics(node, 0).decode(), re.MULTILINE))


def test_dashboard_and_alerts_use_existing_metrics() -> None:
    board = json.loads((DEPLOY / "monitoring" / "grafana-relay.json").read_text())
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())["groups"][0]["rules"]
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for rule in rules]
    names = {name for text in asked for name in re.findall(r"\b(?:tabhub_relay|process)_\w+", text)}
    assert len(names) > 20
    assert names <= _metric_names()
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len({p["id"] for p in board["panels"]}) == len(board["panels"])
    scraped = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())
    assert scraped["scrape_configs"][0]["job_name"] == "tabhub-relay"


def test_every_alert_has_a_section_in_the_runbook() -> None:
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yml").read_text())["groups"][0]["rules"]
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "relay.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for rule in rules:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/relay.md"
        assert anchor in anchors, anchor

"""`tabhub permissions`: the grants (what agents may always do), and which rule decides on a call."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.hub.client import fetch, find_hub
from tabhub.cli.hub.settings import home_and_config
from tabhub.cli.terminal import paint, print_json, safe
from tabhub.client_errors import CliError
from tabhub.store import grants as store
from tabhub.store.home import Home
from tabhub.trust.explain import Question, explain
from tabhub.trust.permissions import Permissions, ToolFacts
from tabhub.trust.site_rules import SiteRules
from tabhub.trust.verdicts import tool_verdict


def show(args: Namespace) -> None:
    grants = store.listed(Home.find())
    if args.json:
        return print_json([_plain(grant) for grant in grants])
    if not grants:
        print("No grants. Choosing “Always” for an approval creates one.")
    for grant in grants:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant.created))
        print(f"{paint(grant.id, 'bold')}  {safe(grant.text)}  ({when}, {safe(grant.approved_by)})")


def revoke(args: Namespace) -> None:
    grant = store.revoke(Home.find(), args.id)
    print(f"Revoked: {safe(grant.text)}. It needs approval again.")


def explain_call(args: Namespace) -> None:
    hub = find_hub()
    if hub.pid is not None:
        question = {"tool": args.tool, "url": args.url, "frame": args.frame, "agent": args.agent}
        sentence = fetch("/permissions/explain", question, hub=hub)["explanation"]
    else:
        sentence = _explain_built_in(args.tool, args.url, args.frame, args.agent)
    if args.json:
        return print_json({"explanation": sentence})
    print(safe(sentence))


def _explain_built_in(name: str, url: str | None, frame: str | None, agent: str | None) -> str:
    """Without a hub, only the built-in tools are known."""
    from tabhub.browser.families import SPECS
    from tabhub.trust.actions import kind_of

    tool = next((spec.tool for spec in SPECS if spec.tool.name == name), None)
    if tool is None:
        raise CliError(f"There is no built-in tool '{name}'.", "For other tools the hub must run: tabhub start")
    home, config = home_and_config()
    permissions = Permissions.parse(config)
    facts = ToolFacts(name, "browser", kind_of("browser", name), tool.read_only)
    question = Question(facts, tool.source.setting, (name,), agent, url, frame)
    verdict = tool_verdict(permissions, facts, tool.source.setting, (name,), agent)
    return explain(question, verdict, permissions, SiteRules.parse(config), store.listed(home))


def _plain(grant: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(grant)
    return {**plain, "text": grant.text}


COMMAND = Group(
    {
        "list": Command(show, JSON, summary="List what agents may always do"),
        "revoke": Command(
            revoke,
            option("id", metavar="ID", help="the grant, as `tabhub permissions list` shows it"),
            summary="Revoke a grant; what it covered needs approval again",
        ),
        "explain": Command(
            explain_call,
            option("--tool", metavar="TOOL", required=True, help="the tool, as agents call it"),
            option("--url", metavar="URL", help="the page it is used on"),
            option("--frame", metavar="URL", help="the frame of that page that it is used in"),
            option("--agent", metavar="NAME", help="the name of the agent's token"),
            JSON,
            summary="State which rule decides on a call, and why",
        ),
    },
    examples=(
        ("tabhub permissions list", "what agents may always do"),
        ("tabhub permissions revoke 1f2e3d4c", "ask again for what a grant allowed"),
        ("tabhub permissions explain --agent claude --tool browser_snapshot --url https://bank.example", "why"),
    ),
)

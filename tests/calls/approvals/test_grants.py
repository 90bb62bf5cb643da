"""Approvals that last: what they cover, how they are widened, listed and revoked; and private data, asked for apart."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tabhub.store import grants, tokens
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import answer_scripts, tab
from tests.harness.hub import AGENT, RunningHub, running_hub
from tests.harness.panel import Panel

MAIL, SHOP = "https://mail.example", "https://shop.example"
TABS = [tab(7, f"{MAIL}/in", active=True), tab(8, f"{SHOP}/")]
SCRIPT = "browser_execute_script"


def asking(tmp_path: Path, **settings: Any) -> Any:
    return running_hub(tmp_path, **{"permissions": None, **settings})


def failed(answer: dict[str, Any]) -> bool:
    return bool(answer["result"].get("isError"))


async def script(agent: Agent, tab_id: int) -> dict[str, Any]:
    return await agent.call(SCRIPT, {"tabId": tab_id, "code": "return 1"})


async def asked(panel: Panel, call: Any, decision: str = "deny", **more: Any) -> dict[str, Any]:
    """The request that a call leads to."""
    calling = asyncio.create_task(call)
    request = await panel.request()
    await panel.notify("confirmation.response", {"id": request["id"], "decision": decision, **more})
    assert failed(await calling) is (decision == "deny")
    return request


async def test_always_means_this_agent_this_kind_of_action_and_this_site(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        request = await asked(panel, script(agent, 7), "allow_always")
        assert request["scope"] == f"{AGENT} may always run scripts on {MAIL}"
        assert request["wider"] == ["every_site", "every_agent"]
        assert not failed(await script(agent, 7))
        (grant,) = grants.listed(hub.home)
        approval = hub.hub.engine.audit.recent(1)[0]["approval"]
        assert approval == {"by": "panel", "decision": "allow_always", "reason": f"grant {grant.id}"}
        # Another site, another kind of action and another agent are asked about.
        await asked(panel, script(agent, 8))
        await asked(panel, agent.call("browser_press_key", {"tabId": 7, "key": "Enter"}))
        await agent.call("browser_release_tab", {"tabId": 7})
        async with client(hub) as other:
            named = {"Authorization": f"Bearer {tokens.create(hub.home, 'ci', 0.0)}"}
            calling = asyncio.create_task(
                other.post(f"/tools/{SCRIPT}/call", json={"tabId": 7, "code": "return 1"}, headers=named)
            )
            assert (await panel.decide("deny"))["token"] == "ci"
            assert (await calling).status_code == 403


async def test_a_wider_scope_is_a_choice_of_its_own(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        calling = asyncio.create_task(script(agent, 7))
        request = await panel.request()
        # It belongs to `always` only.
        await panel.notify(
            "confirmation.response", {"id": request["id"], "decision": "allow_once", "wider": ["every_site"]}
        )
        await panel.settle()
        assert len(hub.hub.approvals) == 1
        wider = {"id": request["id"], "decision": "allow_always", "wider": ["every_site", "every_agent"]}
        await panel.notify("confirmation.response", wider)
        assert not failed(await calling)
        assert not failed(await script(agent, 8))
        (grant,) = grants.listed(hub.home)
        assert grant.text == "every agent may always run scripts on every site"
        hub.hub.engine.audit.flush()
        lines = [json.loads(line) for line in hub.home.audit.read_text().splitlines()]
        assert [line["scope"] for line in lines if line["tool"] == "approval"] == [grant.text]


async def test_a_revoked_grant_no_longer_counts(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        await asked(panel, script(agent, 7), "allow_always")
        (shown,) = (await panel.get("config.getState"))["grants"]
        await panel.get("grants.revoke", {"id": shown["id"]})
        await asked(panel, script(agent, 7), "allow_always")
        # The person asks for approval again where permissions are set, too.
        change = {"plugin": "browser", "tool": SCRIPT, "permission": "ask"}
        await panel.get("config.setToolPermission", change)
        assert (await panel.get("config.getState"))["grants"] == []
        await asked(panel, script(agent, 7))


async def test_a_batch_is_covered_only_if_all_its_steps_are(tmp_path: Path) -> None:
    actions = [{"action": "press", "key": "Enter"}, {"action": "navigate", "url": f"{SHOP}/"}]
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        panel.has_frames = True
        panel.handlers["forwardCDPCommand"] = answer_scripts
        await asked(panel, agent.call("browser_press_key", {"tabId": 7, "key": "Enter"}), "allow_always")
        request = await asked(panel, agent.call("browser_act", {"tabId": 7, "actions": actions}))
        assert request["scope"].endswith(f"may always click and type on {MAIL} and open pages on {SHOP}")
        assert len(hub.hub.approvals) == 0
        calling = asyncio.create_task(agent.call("browser_act", {"tabId": 7, "actions": actions[:1]}))
        await calling
        assert len(hub.hub.approvals) == 0


async def test_an_approval_for_the_session_covers_the_site_it_was_given_on(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        await asked(panel, script(agent, 7), "allow_session")
        assert not failed(await script(agent, 7))
        await asked(panel, script(agent, 8))


async def test_a_page_without_a_known_site_is_approved_for_one_call(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=[tab(7, "about:blank")]) as panel, Agent(hub) as agent:
        request = await asked(panel, script(agent, 7), "allow_once")
        assert request["choices"] == ["allow_once", "deny"]
        assert "scope" not in request


async def test_what_version_0_1_0_saved_as_always_still_holds(tmp_path: Path) -> None:
    saved = running_hub(tmp_path, permissions={"default": "ask", "browser": {"tools": {SCRIPT: "auto"}}})
    async with saved as hub, Panel(hub, tabs=list(TABS)), Agent(hub) as agent:
        assert not failed(await script(agent, 7))


PRIVATE: list[tuple[str, dict[str, Any]]] = [
    ("browser_get_cookies", {"url": f"{MAIL}/"}),
    ("browser_get_storage", {"tabId": 7}),
    ("browser_search_history", {"query": ""}),
    ("browser_get_visits", {"url": f"{MAIL}/in"}),
    ("browser_get_recently_closed", {}),
    ("browser_search_bookmarks", {"query": "a"}),
    ("browser_list_bookmark_tree", {}),
    ("browser_list_downloads", {}),
]


async def test_cookies_storage_and_history_are_asked_for_in_a_persons_own_browser(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        for name, arguments in PRIVATE:
            request = await asked(panel, agent.call(name, arguments))
            assert "needs approval also for reading" in request["message"], name
        assert not failed(await agent.call("browser_get_tab_info", {"tabId": 7}))


async def test_in_a_managed_browser_private_data_is_not_asked_for(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        panel.handlers["getCookies"] = lambda _: {"cookies": []}
        await panel.notify("extension.hello", {"managed": True})
        await panel.settle()
        assert not failed(await agent.call("browser_get_cookies", {"url": f"{MAIL}/"}))


async def test_the_panel_shows_rules_grants_and_what_decides_on_a_page(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub, tabs=list(TABS)) as panel:
        await panel.get("sites.set", {"pattern": "*.bank.example", "level": "block"})
        await panel.get("sites.set", {"pattern": "*.bank.example", "level": "read", "agent": "ci"})
        state = await panel.get("config.getState")
        assert state["siteRules"] == [
            {"pattern": "*.bank.example", "agent": "ci", "level": "read"},
            {"pattern": "*.bank.example", "agent": None, "level": "block"},
        ]
        page = await panel.get("sites.page", {"url": "https://www.bank.example/x"})
        assert (page["pattern"], page["level"]) == ("*.bank.example", "block")
        assert page["explanations"][0] == (
            "An agent may not read pages with browser_snapshot on https://www.bank.example: "
            "your site rule “*.bank.example: block” decides."
        )
        assert (await panel.get("sites.page", {"url": "about:blank"}))["pattern"] is None
        assert (await panel.get("sites.page", {"url": "http://127.0.0.1:8080/"}))["pattern"] == "127.0.0.1:8080"
        await panel.get("sites.set", {"pattern": "*.bank.example", "level": None})
        refused = await panel.ask("sites.set", {"pattern": "bank.example/path", "level": "block"})
        assert "a path" in refused["error"]["message"]


async def test_sensitive_sites_are_suggested_until_the_person_has_decided(tmp_path: Path) -> None:
    async with asking(tmp_path) as hub, Panel(hub) as panel:
        suggested = (await panel.get("config.getState"))["suggestedSites"]
        assert [each["category"] for each in suggested] == ["banking", "mail", "passwords", "admin"]
        await panel.get("sites.suggestion", {"category": "mail"})
        state = await panel.get("config.getState")
        assert state["suggestedSites"][1]["patterns"] == []
        assert {"pattern": "mail.google.com", "agent": None, "level": "block"} in state["siteRules"]
        await panel.get("sites.suggestion", {"category": None})
        assert (await panel.get("config.getState"))["suggestedSites"] is None
        assert settings(hub)["suggestSites"] is False


def settings(hub: RunningHub) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(hub.home.config.read_text())
    return values

"""Which tabs belong to a plugin, and the tools that report it."""

from __future__ import annotations

import pytest

from tabhub.browser import browser_tools
from tabhub.browser.tool_spec import PluginSite
from tabhub.core.match_patterns import matches
from tabhub.errors import NotInBrowser
from tests.browser.conftest import Bench, Choice
from tests.browser.fake_browser import FakeBrowser


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("*://*.example.com/*", "https://mail.example.com/inbox?q=1#x", True),
        ("*://*.example.com/*", "http://example.com/", True),
        ("*://*.example.com/*", "https://badexample.com/", False),
        ("*://*.example.com/*", "ftp://example.com/", False),
        ("https://example.com/*", "http://example.com/", False),
        ("https://example.com/app/*/edit", "https://example.com/app/7/edit", True),
        ("https://example.com/app/*/edit", "https://example.com/app/edit", False),
        ("https://example.com/", "https://example.com/other", False),
        ("https://example.com/ab*bc", "https://example.com/abc", False),
        ("http://localhost:3000/*", "http://localhost:3000/x", True),
        ("http://localhost:3000/*", "http://localhost:3001/x", False),
        ("https://example.com/*", "https://user:pw@example.com/x", True),
        ("https://example.com/*", "https://example.com@evil.example/x", False),
        ("<all_urls>", "https://a.example/", True),
        ("<all_urls>", "chrome://settings", False),
        ("nonsense", "https://a.example/", False),
        ("https://*/*", "https://a.example/", True),
    ],
)
def test_url_patterns_match(pattern: str, url: str, fits: bool) -> None:
    assert matches(pattern, url) is fits


def with_plugins(bench: Bench, *sites: PluginSite) -> None:
    """Build the tools again, with plugins installed."""
    made = browser_tools(bench.browsers, Choice(bench.browsers), bench.files, plugins=lambda: sites)
    bench.tools = {tool.name: (tool, run) for tool, run in made}


async def test_each_plugin_is_listed_with_its_tabs(bench: Bench) -> None:
    with_plugins(bench, PluginSite("one", ("https://site1.example/*",)), PluginSite("none", ("https://x.example/*",)))
    listed = (await bench.call("plugin_list_tabs"))["plugins"]
    assert [(each["plugin"], [tab["tabId"] for tab in each["tabs"]]) for each in listed] == [("one", [1]), ("none", [])]
    assert [each["plugin"] for each in (await bench.call("plugin_list_tabs", plugin="none"))["plugins"]] == ["none"]
    with pytest.raises(NotInBrowser, match="no plugin named 'two'") as caught:
        await bench.call("plugin_list_tabs", plugin="two")
    assert caught.value.hint == "Plugins: none, one."


async def test_adapter_state_is_reported_as_the_browsers_have_it(bench: Bench) -> None:
    with_plugins(bench, PluginSite("one", ()))
    other = FakeBrowser("b2").join(bench.browsers)
    adapter = {
        "plugin": "one",
        "hash": "h",
        "matches": ["https://site1.example/*"],
        "world": "MAIN",
        "tabIds": [1, 4711],
    }
    bench.browser.answers["getAdapters"] = lambda _: {"adapters": [adapter]}
    other.answers["getAdapters"] = lambda _: {"adapters": []}
    result = await bench.call("extension_check_adapter", plugin="one")
    there = {"browserId": "b1", "matches": ["https://site1.example/*"], "tabIds": [1]}
    assert result == {"plugin": "one", "injected": True, "browsers": [there]}
    bench.browser.answers["getAdapters"] = lambda _: {"adapters": []}
    assert (await bench.call("extension_check_adapter", plugin="one"))["injected"] is False
    with pytest.raises(NotInBrowser, match="no plugin named 'two'"):
        await bench.call("extension_check_adapter", plugin="two")

"""Resources and prompts of external servers: pages of listings, and which server a name belongs to."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tabhub.core.resources import GET, NO_RESOURCES, READ, ListedItem, ResourceDirectory, ServerResources
from tabhub.core.upstream_names import upstream_name
from tabhub.core.upstream_uris import resource_uri, template_uri
from tabhub.errors import InvalidParams, UnknownPrompt, UnknownResource


def resources(server: str, *uris: str) -> tuple[ListedItem, ...]:
    rows = ((resource_uri(server, uri), uri) for uri in uris)
    return tuple(ListedItem(key, own, orjson.dumps({"uri": key, "name": own})) for key, own in rows)


def templates(server: str, *given: str) -> tuple[ListedItem, ...]:
    return tuple(ListedItem(template_uri(server, each), each, b"{}") for each in given)


def prompts(server: str, *names: str) -> tuple[ListedItem, ...]:
    return tuple(ListedItem(upstream_name(server, name), name, orjson.dumps({"name": name})) for name in names)


def listed(directory: ResourceDirectory, listing_name: Any = "resources") -> list[list[str]]:
    """The entries of all pages."""
    pages, cursor = [], None
    while True:
        page = orjson.loads(directory.page(listing_name, cursor, stateless=False))
        pages.append([entry.get("uri") or entry["name"] for entry in page[listing_name]])
        cursor = page.get("nextCursor")
        if cursor is None:
            return pages


def make(page: int = 100, hidden: Any = lambda server, method: False) -> ResourceDirectory:
    return ResourceDirectory(page, hidden)


def test_changes_do_not_shift_the_pages_of_a_listing() -> None:
    directory = make(2)
    directory.replace("b", ServerResources(resources=resources("b", "x:1", "x:2", "x:3")))
    directory.replace("a", ServerResources(resources=resources("a", "ä:1")))
    assert [len(page) for page in listed(directory)] == [2, 2]
    cursor = orjson.loads(directory.page("resources", None, stateless=False))["nextCursor"]
    directory.replace("a", NO_RESOURCES)
    left = orjson.loads(directory.page("resources", cursor, stateless=False))
    assert [entry["name"] for entry in left["resources"]] == ["x:2", "x:3"]
    with pytest.raises(InvalidParams, match="cursor"):
        directory.page("resources", "ü", stateless=False)


def test_the_stateless_form_has_a_ttl() -> None:
    page = orjson.loads(make().page("templates", None, stateless=True))
    assert page == {"resourceTemplates": [], "ttlMs": 1000, "cacheScope": "private"}


def test_hidden_resources_are_not_listed() -> None:
    directory = make(hidden=lambda server, method: (server, method) == ("a", READ))
    for server in ("a", "b"):
        directory.replace(server, ServerResources(resources=resources(server, "x:1"), prompts=prompts(server, "p")))
    assert listed(directory) == [["tabhub+mcp://b/x:1"]]
    assert listed(directory, "prompts") == [["p", "p"]]
    assert GET != READ


def test_each_list_counts_its_own_changes() -> None:
    directory = make()
    one = ServerResources(resources=resources("a", "x:1"), prompts=prompts("a", "p"))
    assert directory.replace("a", one) == ["resources", "prompts"]
    assert directory.replace("a", one) == []
    assert directory.replace("a", ServerResources(templates=templates("a", "x:{n}"), prompts=one.prompts)) == [
        "resources"
    ]
    assert directory.replace("a", NO_RESOURCES) == ["resources", "prompts"]
    assert directory.versions == {"resources": 3, "prompts": 2}


def test_a_prompt_is_found_by_its_name_or_its_servers_name_if_unique() -> None:
    directory = make()
    directory.replace("a", ServerResources(prompts=prompts("a", "plan", "review")))
    directory.replace("my server", ServerResources(prompts=prompts("my server", "review")))
    assert directory.prompt("mcp__a__review")[0] == "a"
    assert directory.prompt(upstream_name("my server", "review"))[0] == "my server"
    assert directory.prompt("plan")[0] == "a"
    with pytest.raises(UnknownPrompt, match="2 servers have a prompt") as several:
        directory.prompt("review")
    assert "mcp__a__review" in several.value.text()
    with pytest.raises(UnknownPrompt) as unknown:
        directory.prompt("mcp__a__reviev")
    assert "Did you mean mcp__a__review" in unknown.value.text()


def test_a_resource_is_found_by_its_uri_before_its_server_has_listed_anything() -> None:
    directory = make()
    assert directory.resource("tabhub+mcp://Away/file:///x", ["Away"]) == ("Away", "file:///x")
    assert directory.resource("tabhub+mcp://away/file:///x", ["Away"]) == ("Away", "file:///x")
    with pytest.raises(UnknownResource):
        directory.resource("tabhub+mcp://away/file:///x", ["Away", "AWAY"])


def test_a_resource_is_found_by_its_servers_uri_if_unique() -> None:
    directory = make()
    directory.replace("a", ServerResources(resources=resources("a", "x:1", "x:2"), reads=True))
    directory.replace(
        "b", ServerResources(resources=resources("b", "x:2"), templates=templates("b", "y:{n}"), reads=True)
    )
    known = ["a", "b"]
    assert directory.resource("x:1", known) == ("a", "x:1")
    assert directory.resource("y:7", known) == ("b", "y:7")
    assert directory.resource("y:{n}", known) == ("b", "y:{n}")
    with pytest.raises(UnknownResource, match="2 servers may have") as several:
        directory.resource("x:2", known)
    assert "tabhub+mcp://a/x:2, tabhub+mcp://b/x:2" in several.value.text()
    with pytest.raises(UnknownResource):
        directory.resource("z:1", known)
    directory.replace("b", NO_RESOURCES)
    assert directory.resource("z:1", ["a"]) == (
        "a",
        "z:1",
    )  # not every resource is listed; only one server has resources
    directory.replace("a", NO_RESOURCES)
    with pytest.raises(UnknownResource, match="no external server that is on has it"):
        directory.resource("z:1", [])


def test_a_uri_of_another_hub_is_its_servers_own_uri() -> None:
    directory = make()
    directory.replace("outer", ServerResources(resources=resources("outer", "tabhub+mcp://inner/x:1"), reads=True))
    assert directory.resource("tabhub+mcp://inner/x:1", ["outer"]) == ("outer", "tabhub+mcp://inner/x:1")
    nested = "tabhub+mcp://outer/tabhub+mcp://inner/x:1"
    assert directory.resource(nested, ["outer"]) == ("outer", "tabhub+mcp://inner/x:1")

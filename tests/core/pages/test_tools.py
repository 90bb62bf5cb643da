"""Tools of pages: registered once, updated by difference, removed with their page unless cached."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.pages.tools import Frame, PageToolTable, read_tool
from tabhub.errors import BadInput
from tabhub.limits import Limits

SHOP, PAY = "https://shop.example", "https://pay.example"


def frame(tab: int = 7, frame_id: int = 0, document: str = "d1", origin: str = SHOP, at: float = 1.0) -> Frame:
    return Frame(tab, frame_id, document, origin, f"{origin}/page", "Title", {}, at)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"does {name}", "inputSchema": {"type": "object"}, "via": "webmcp", **more}


KEPT = {"annotations": {"cache": True}}


@pytest.mark.req("S000-spec-registration-07", "S000-hub-02")
def test_the_same_registration_again_changes_nothing() -> None:
    pages = PageToolTable()
    first = pages.register(frame(), [tool("a"), tool("b")])
    assert (first.sites, first.added) == (frozenset({SHOP}), ("a", "b"))
    held = pages.frames(SHOP)[0].tools["a"]
    again = pages.register(frame(at=5.0), [tool("a"), tool("b")])
    assert (again.sites, again.added, again.removed) == (frozenset(), (), ())
    assert pages.frames(SHOP)[0].tools["a"] is held
    assert pages.frames(SHOP)[0].updated == 1.0


@pytest.mark.req("S000-spec-registration-06", "S000-spec-architecture-08", "S000-messages-03")
def test_an_update_is_applied_by_difference_and_tools_do_not_change() -> None:
    pages = PageToolTable()
    pages.register(frame(), [tool("a"), tool("b")])
    before = pages.frames(SHOP)[0].tools
    change = pages.update(7, 0, "d1", [tool("b"), tool("a", description="new words"), tool("c")], 2.0)
    assert (change.added, change.removed) == (("c",), ())
    after = pages.frames(SHOP)[0].tools
    assert after["b"] is before["b"]
    assert after["a"] is not before["a"]
    assert before["a"].description == "does a"
    assert pages.update(7, 0, "d1", [tool("c")], 3.0).removed == ("b", "a")


@pytest.mark.req("S000-spec-registration-10")
def test_an_empty_list_registers_nothing_and_tools_may_come_later() -> None:
    pages = PageToolTable()
    pages.register(frame(), [])
    assert pages.frames_with_tool(SHOP, "a") == []
    assert pages.update(7, 0, "d1", [tool("a")], 2.0).added == ("a",)
    assert pages.update(7, 0, "d1", [], 3.0).removed == ("a",)


@pytest.mark.req("S000-spec-cleanup-07")
def test_a_reload_replaces_the_document_and_its_late_unload_is_ignored() -> None:
    pages = PageToolTable()
    pages.register(frame(document="old"), [tool("a")])
    pages.register(frame(document="new"), [tool("a")])
    assert pages.remove_document(7, 0, "old").sites == frozenset()
    assert [frame.document for frame in pages.frames_with_tool(SHOP, "a")] == ["new"]
    assert "not registered" in pages.update(7, 0, "old", [], 2.0).problems[0]
    assert pages.remove_document(7, 0, "new").sites == {SHOP}
    assert pages.sites() == []


@pytest.mark.req("S000-spec-security-04", "S000-spec-cleanup-05")
def test_sites_are_separate_and_a_closed_tab_affects_only_itself() -> None:
    pages = PageToolTable()
    pages.register(frame(7), [tool("a")])
    pages.register(frame(7, 3, "f", PAY), [tool("a")])
    pages.register(frame(8), [tool("a")])
    assert [frame.key for frame in pages.frames_with_tool(SHOP, "a")] == [(7, 0), (8, 0)]
    assert pages.sites_of(7) == {SHOP, PAY}
    assert pages.remove_tab(7).sites == {SHOP, PAY}
    assert pages.sites() == [SHOP]
    # a frame that navigates to another site leaves the first
    assert pages.register(frame(8, document="x", origin=PAY), [tool("z")]).sites == {SHOP, PAY}
    assert pages.sites() == [PAY]


def test_the_top_frame_of_a_tab_comes_first() -> None:
    pages = PageToolTable()
    pages.register(frame(7, 5, "sub"), [tool("a"), tool("b")])
    pages.register(frame(7, 0, "top"), [tool("a")])
    assert [frame.document for frame in pages.frames_with_tool(SHOP, "a")] == ["top"]
    assert [frame.document for frame in pages.frames_with_tool(SHOP, "b")] == ["sub"]


@pytest.mark.req("S000-spec-registration-08", "S000-flows-07", "S000-overview-07")
def test_only_tools_that_ask_for_it_are_cached() -> None:
    pages = PageToolTable()
    pages.register(frame(), [tool("find", **KEPT), tool("buy", annotations={"cache": "yes"}), tool("look")])
    pages.remove_tab(7)
    assert list(pages.cached.of(SHOP)) == ["find"]
    assert pages.cached.of(SHOP)["find"].url == f"{SHOP}/page"
    fresh = PageToolTable()
    fresh.restore(pages.cached)
    assert fresh.sites() == [SHOP]
    fresh.register(frame(at=9.0), [tool("find", **KEPT)])
    fresh.mark_seen(12.0)
    assert fresh.cached.of(SHOP)["find"].seen == 12.0


def test_cached_tools_are_bounded_and_the_oldest_is_dropped() -> None:
    pages = PageToolTable(Limits(page_cached=3))
    for at in range(5):
        pages.register(frame(7, document=f"d{at}", at=float(at)), [tool(f"t{at}", **KEPT)])
    assert list(pages.cached.of(SHOP)) == ["t2", "t3", "t4"]


@pytest.mark.req("B27")
def test_no_site_pushes_out_what_another_has_cached() -> None:
    for limits in (Limits(page_cached=4), Limits(page_cached_bytes=600)):
        pages = PageToolTable(limits)
        pages.register(frame(at=1.0), [tool("find", **KEPT)])
        for at in range(2, 9):
            place = frame(8, document=f"d{at}", origin=PAY, at=float(at))
            pages.register(place, [tool(f"t{at}", **KEPT)])
        assert list(pages.cached.of(SHOP)) == ["find"]
        assert "t8" in pages.cached.of(PAY)
        assert len(list(pages.cached)) <= limits.page_cached
        assert sum(each.tool.size for each in pages.cached) <= limits.page_cached_bytes


@pytest.mark.req("S000-spec-registration-11", "B15", "B17", "S000-spec-security-02", "S000-spec-security-07")
def test_invalid_tools_are_rejected_one_by_one_with_the_reason() -> None:
    pages = PageToolTable()
    bad: list[Any] = [
        7,
        {"description": "no name"},
        tool(""),
        tool("  "),
        tool("x" * 200),
        tool("s1", inputSchema="text"),
        tool("s2", inputSchema={"type": "array"}),
        tool("s3", inputSchema={"properties": {"a": {"type": "nonsense"}}}),
        tool("s4", inputSchema={"properties": {"a": {"pattern": "(" * 10}}}),
        tool("s5", inputSchema={"$ref": "#"}),
        tool("s6", inputSchema={"properties": {"a": {"$ref": "http://evil.example/"}}}),
        tool("s7", inputSchema={"description": "x" * 70_000}),
        tool("m", inputSchema=None, via="mcpb"),
        tool("v", via="magic"),
        tool("d", description=7),
        tool("good"),
    ]
    change = pages.register(frame(), [tool("good"), *bad])
    assert change.added == ("good",)
    assert len(change.problems) == len(bad)


def test_a_page_tool_without_a_schema_accepts_anything() -> None:
    assert read_tool(tool("a", inputSchema=None)).input_schema == {"type": "object", "properties": {}}
    assert read_tool(tool("a", inputSchema={"properties": {}})).input_schema["type"] == "object"


def test_hints_are_kept_and_other_annotations_dropped() -> None:
    hints = {"readOnlyHint": True, "untrustedContentHint": True, "idempotentHint": False, "title": "T"}
    odd = {"__proto__": True, "x": {"y": 1}, "long": "x" * 300, "a b": True}
    assert read_tool(tool("a", annotations={**hints, **odd})).annotations == hints
    assert read_tool(tool("a", annotations=[1])).annotations == {}


def test_the_number_of_tools_is_bounded() -> None:
    pages = PageToolTable(Limits(page_tools=3, page_site_tools=5))
    assert len(pages.register(frame(1), [tool(f"t{i}") for i in range(10)]).added) == 3
    assert len(pages.register(frame(2), [tool(f"t{i}") for i in range(3)], declared=7).added) == 2
    assert pages.left_out() == {"shop.example": (17, 5)}
    pages.remove_tab(1)
    assert len(pages.register(frame(2), [tool(f"t{i}") for i in range(3)]).added) == 1
    assert pages.left_out() == {}


@pytest.mark.req("B27")
def test_the_documents_of_a_tab_are_bounded_and_its_own_page_is_always_among_them() -> None:
    pages = PageToolTable(Limits(page_documents=2))
    for number in (1, 2, 3):
        change = pages.register(frame(7, number, f"d{number}"), [tool("a")])
    assert change.sites == frozenset()
    assert "2 documents" in change.problems[0]
    assert pages.register(frame(7, 0), [tool("a")]).added == ("a",)
    assert pages.register(frame(7, 2, "again"), [tool("b")]).added == ("b",)


@pytest.mark.req("B27")
def test_the_largest_site_gives_way_and_the_newest_document_first() -> None:
    limits = Limits(page_tools_all=10)
    pages = PageToolTable(limits)
    pages.register(frame(1, at=1.0), [tool(f"t{i}") for i in range(4)])
    pages.register(frame(2, at=2.0), [tool(f"t{i}") for i in range(4)])
    change = pages.register(frame(3, origin=PAY), [tool(f"p{i}") for i in range(4)])
    assert (change.sites, change.trimmed) == (frozenset({PAY}), frozenset({SHOP}))
    assert [len(frame.tools) for frame in pages.frames(SHOP)] == [4, 2]
    assert len(pages.frames(PAY)[0].tools) == 4
    change = pages.register(frame(4, origin=PAY), [tool(f"q{i}") for i in range(4)])
    assert (change.sites, change.added) == (frozenset({PAY}), ("q0",))
    assert pages.left_out() == {"pay.example": (8, 5), "shop.example": (8, 5)}


@pytest.mark.req("B27")
def test_many_small_sites_lose_no_more_than_has_to_go() -> None:
    pages = PageToolTable(Limits(page_tools_all=50))
    for number in range(10):
        pages.register(frame(number, origin=f"https://s{number}.example"), [tool(f"t{i}") for i in range(5)])
    change = pages.register(frame(99), [tool("a"), tool("b")])
    assert change.added == ("a", "b")
    assert len(change.trimmed) == 2
    assert sum(len(each.tools) for origin in pages.sites() for each in pages.frames(origin)) == 50


@pytest.mark.req("B28")
def test_a_tool_with_hidden_characters_in_its_name_is_refused_and_in_its_texts_readable() -> None:
    pages = PageToolTable()
    strange = {"description": "Does\u200b it.", "inputSchema": {"properties": {"a": {"description": "x\u202e"}}}}
    change = pages.register(frame(), [tool("buy\U000e0041"), tool("good", **strange)])
    assert change.added == ("good",)
    assert change.problems == ("tool 'buy\\U000e0041': its name contains a hidden character (U+E0041)",)
    schema = pages.frames(SHOP)[0].tools["good"].input_schema
    assert schema["properties"] == {"a": {"description": "x\\u{202E}"}}


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.sampled_from("abcd"), st.integers(0, 12)), max_size=30)
)
def test_all_shares_hold_after_any_reports_and_nothing_is_counted_that_is_gone(
    reports: list[tuple[int, int, str, int]],
) -> None:
    limits = Limits(page_tools=6, page_tab_tools=9, page_embedded_tools=2, page_site_tools=10, page_tools_all=20)
    pages = PageToolTable(limits)
    for tab, frame_id, site, count in reports:
        origin = f"https://{site}.example"
        place = replace(frame(tab, frame_id, origin=origin), embedded=frame_id > 1)
        pages.register(place, [tool(f"t{n}") for n in range(count)])
    frames = [each for origin in pages.sites() for each in pages.frames(origin)]
    assert sum(len(each.tools) for each in frames) <= 20
    for tab in range(1, 7):
        assert sum(len(each.tools) for each in frames if each.tab_id == tab) <= 9
    for site in "abcd":
        own = [each for each in frames if each.origin == f"https://{site}.example"]
        assert sum(len(each.tools) for each in own) <= 10
        for tab in range(1, 7):
            assert sum(len(each.tools) for each in own if each.tab_id == tab and each.embedded) <= 2
    for tab in range(1, 7):
        pages.remove_tab(tab)
    assert len(pages.shares) == 0


@pytest.mark.req("S000-capabilities-02", "S000-page-server-04", "S000-principles-04")
def test_capabilities_are_those_of_all_pages_together() -> None:
    pages = PageToolTable()
    assert pages.capabilities() == {"multiTabSupport": True, "cacheSupported": False, "elicitation": False}
    pages.register(replace(frame(1), capabilities={"cacheSupported": True}), [])
    pages.register(replace(frame(2), capabilities={"elicitation": {}}), [])
    pages.register(frame(3), [])
    assert pages.capabilities() == {"multiTabSupport": True, "cacheSupported": True, "elicitation": True}
    pages.remove_tab(1)
    assert pages.capabilities()["cacheSupported"] is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
RAW = st.dictionaries(
    st.sampled_from(["name", "title", "description", "inputSchema", "outputSchema", "annotations", "via"]), JSON
)


@given(RAW | JSON)
def test_any_declaration_is_parsed_or_rejected(raw: Any) -> None:
    try:
        made = read_tool(raw)
    except BadInput:
        return
    assert read_tool(json.loads(made.wire)).wire == made.wire


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["register", "update", "gone", "closed"]),
        st.integers(1, 3),
        st.integers(0, 1),
        st.sampled_from(["d", "e"]),
        st.sampled_from([SHOP, PAY]),
        st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    ),
    max_size=25,
)


@given(STEPS)
def test_the_table_equals_the_last_reports(steps: list[tuple[str, int, int, str, str, list[str]]]) -> None:
    pages, expected = PageToolTable(), dict[tuple[int, int], tuple[str, str, set[str]]]()
    for what, tab, frame_id, document, origin, names in steps:
        place = (tab, frame_id)
        if what == "register":
            pages.register(frame(tab, frame_id, document, origin), [tool(name) for name in names])
            expected[place] = (document, origin, set(names))
        elif what == "update":
            pages.update(tab, frame_id, document, [tool(name) for name in names], 1.0)
            if place in expected and expected[place][0] == document:
                expected[place] = (document, expected[place][1], set(names))
        elif what == "gone":
            pages.remove_document(tab, frame_id, document)
            if place in expected and expected[place][0] == document:
                del expected[place]
        else:
            pages.remove_tab(tab)
            expected = {there: value for there, value in expected.items() if there[0] != tab}
    held = {f.key: (f.document, f.origin, set(f.tools)) for origin in pages.sites() for f in pages.frames(origin)}
    assert held == expected

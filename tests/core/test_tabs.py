"""The table of tabs: ids, changes, and untrusted descriptions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.tabs import TabChanges, TabTable
from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.wire.extension_link import READERS, TabStateChanged


def raw(tab_id: int, **more: Any) -> dict[str, Any]:
    return {"tabId": tab_id, "url": f"https://site{tab_id}.example/", "title": f"T{tab_id}", "windowId": 1, **more}


def report(**params: Any) -> TabStateChanged:
    decoded = READERS["tab.stateChanged"](params)
    assert isinstance(decoded, TabStateChanged)
    return decoded


def ids(tabs: Any) -> list[int]:
    return [tab.tab_id for tab in tabs]


def test_a_browsers_own_ids_are_used_while_they_are_unused() -> None:
    table = TabTable()
    changes = table.sync("a", [raw(1), raw(2)])
    assert ids(changes.opened) == [1, 2]
    assert table.find("a", 2) == table.get(2)


def test_the_same_id_in_another_browser_gets_a_fresh_number() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    (tab,) = table.sync("b", [raw(1)]).opened
    assert tab.tab_id > 2**31
    assert tab.chrome_id == 1
    assert table.find("b", 1) == tab
    assert table.get(1) == table.find("a", 1)


def test_an_id_is_not_assigned_to_another_browser_after_its_tab_closed() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    table.apply("a", report(tabId=1, change="removed"))
    (tab,) = table.sync("b", [raw(1)]).opened
    assert tab.tab_id != 1


def test_a_full_list_yields_opened_closed_and_changed_tabs() -> None:
    table = TabTable()
    table.sync("a", [raw(1), raw(2), raw(3)])
    changes = table.sync("a", [raw(1), raw(2, title="new"), raw(4)])
    assert (ids(changes.opened), ids(changes.closed), ids(changes.changed)) == ([4], [3], [2])
    assert not table.sync("a", [raw(1), raw(2, title="new"), raw(4)])


def test_a_removed_tab_is_reported_once() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    assert ids(table.apply("a", report(tabId=1, change="removed")).closed) == [1]
    assert table.apply("a", report(tabId=1, change="removed")) == TabChanges()
    assert table.get(1) is None


def test_a_replaced_tab_keeps_its_hub_id_and_its_old_number_is_not_reused() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    changes = table.apply("a", report(tabId=9, change="replaced", removedTabId=1, tab=raw(9)))
    assert ids(changes.changed) == [1]
    tab = table.find("a", 9)
    assert tab is not None
    assert (tab.tab_id, tab.chrome_id) == (1, 9)
    (other,) = table.apply("a", report(tabId=1, change="created", tab=raw(1))).opened
    assert other.tab_id != 1


def test_a_replacement_may_be_reported_without_a_description() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    assert table.apply("a", report(tabId=9, change="replaced", removedTabId=1)) == TabChanges()
    unloaded = report(tabId=9, change="updated", tab={**raw(9), "discarded": True})
    assert ids(table.apply("a", unloaded).changed) == [1]
    assert table.apply("a", report(tabId=8, change="replaced", removedTabId=7)) == TabChanges()


def test_tabs_of_a_reconnected_browser_get_their_ids_back() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    (second,) = table.sync("b", [raw(1)]).opened
    assert ids(table.disconnect("b").disconnected) == [second.tab_id]
    assert table.get(second.tab_id) is None
    assert table.find_disconnected(second.tab_id)
    changes = table.sync("b", [raw(1), raw(5)])
    assert ids(changes.opened) == [second.tab_id, 5]
    assert not table.find_disconnected(second.tab_id)


def test_tabs_missing_after_a_reconnect_are_closed() -> None:
    table = TabTable()
    table.sync("a", [raw(1), raw(2)])
    assert not table.disconnect("a").closed
    assert ids(table.sync("a", [raw(2)]).closed) == [1]


def test_a_report_before_the_full_list_restores_the_tabs_id() -> None:
    table = TabTable()
    table.sync("x", [raw(1)])
    (tab,) = table.sync("a", [raw(1)]).opened
    table.disconnect("a")
    (again,) = table.apply("a", report(tabId=1, change="updated", tab=raw(1))).opened
    assert again.tab_id == tab.tab_id


def test_one_tab_is_active_in_a_window_and_one_window_focused() -> None:
    table = TabTable()
    table.sync("a", [raw(1, active=True, windowFocused=True), raw(2), raw(3, windowId=2, active=True)])
    changes = table.apply("a", report(tabId=2, change="activated"))
    assert ids(changes.changed) == [2, 1]
    active = {tab.tab_id for tab in table if tab.active}
    assert active == {2, 3}
    table.apply("a", report(tabId=3, change="updated", tab=raw(3, windowId=2, active=True, windowFocused=True)))
    assert {tab.tab_id for tab in table if tab.window_focused} == {3}


def test_a_navigations_answer_updates_the_tab_before_its_report() -> None:
    table = TabTable()
    table.sync("a", [raw(1, status="loading")])
    (tab,) = table.apply_navigation("a", 1, "https://new.example/", "New", "complete").changed
    assert (tab.url, tab.title, tab.status, tab.window_id) == ("https://new.example/", "New", "complete", 1)
    assert not table.apply_navigation("a", 7, "https://x.example/", "", "complete")


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        "tab",
        {},
        {"tabId": True},
        {"tabId": "1"},
        {"tabId": 1.0},
        {"tabId": -1},
        {"tabId": 2**60},
        {"tabId": 3, "url": 5},
        {"tabId": 3, "active": 1},
        {"tabId": 3, "windowId": True},
        {"tabId": 3, "title": {"__proto__": 1}},
    ],
)
def test_an_invalid_description_is_skipped_and_reported(bad: Any) -> None:
    table = TabTable()
    changes = table.sync("a", [raw(1), bad, raw(2)])
    assert ids(changes.opened) == [1, 2]
    assert len(changes.problems) == 1
    if bad is not None:
        with pytest.raises(InvalidParams):
            report(tabId=3, change="created", tab=bad)


@pytest.mark.parametrize("bad", [{}, {"tabId": "x"}, {"tabId": 3}, {"tabId": 3, "change": "eaten"}])
def test_an_invalid_report_is_rejected(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=r"tab\.stateChanged"):
        report(**bad)


def test_a_report_of_an_unknown_tab_without_a_description_changes_nothing() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    changes = table.apply("a", report(tabId=3, change="updated"))
    assert not changes
    assert changes.problems
    assert ids(table) == [1]


def test_a_report_that_describes_another_tab_is_rejected() -> None:
    table = TabTable()
    assert table.apply("a", report(tabId=1, change="updated", tab=raw(2))).problems
    assert len(table) == 0


def test_count_and_text_are_bounded() -> None:
    table = TabTable(Limits(tabs_per_browser=2, tab_text=10))
    changes = table.sync("a", [raw(n, url="https://" + "x" * 100) for n in range(5)])
    assert len(changes.opened) == 2
    assert changes.problems
    assert all(len(tab.url) == 10 for tab in table)
    assert table.apply("a", report(tabId=9, change="created", tab=raw(9))).problems
    assert len(table) == 2


def test_a_description_has_only_the_flags_that_are_set() -> None:
    table = TabTable()
    table.sync("a", [raw(1, pinned=True, groupId=4), raw(2, groupId=-1)])
    first, second = (tab.describe() for tab in table)
    assert first["pinned"] is True
    assert first["groupId"] == 4
    assert "pinned" not in second
    assert "groupId" not in second


BANK, EVIL = "https://bank.example", "https://evil.example"


def sites(table: TabTable) -> dict[int, str]:
    return {tab.tab_id: tab.site for tab in table}


@pytest.mark.parametrize("url", ["about:blank", "data:text/html,x", "blob:null/1", "about:srcdoc"])
def test_document_without_an_origin_is_attributed_to_its_opener(url: str) -> None:
    table = TabTable()
    table.sync("a", [raw(3, url=url, openerTabId=2), raw(2, url=f"{BANK}/in"), raw(4, url=url)])
    assert sites(table)[3] == BANK
    assert sites(table)[4].startswith("unknown (")
    # what the opener shows later is not the creator
    table.apply("a", report(tabId=2, change="updated", tab=raw(2, url=f"{EVIL}/")))
    table.apply("a", report(tabId=3, change="updated", tab=raw(3, url=url, title="Statement", openerTabId=2)))
    assert sites(table)[3] == BANK


def test_document_without_an_origin_is_attributed_to_the_page_before_it() -> None:
    table = TabTable()
    table.sync("a", [raw(1, url=f"{BANK}/in")])
    table.apply_navigation("a", 1, "about:blank", "", "complete")
    assert sites(table) == {1: BANK}
    table.disconnect("a")
    table.sync("a", [raw(1, url="about:blank")])
    assert sites(table) == {1: BANK}


def test_document_that_either_of_two_sites_may_have_created_is_of_unknown_origin() -> None:
    table = TabTable()
    table.sync("a", [raw(1, url=f"{EVIL}/"), raw(2, url=f"{BANK}/in", openerTabId=1)])
    table.apply("a", report(tabId=2, change="updated", tab=raw(2, url="about:blank", openerTabId=1)))
    assert sites(table) == {1: EVIL, 2: "unknown (about:)"}


def test_opener_that_the_browser_corrects_counts_alone() -> None:
    table = TabTable()
    table.sync("a", [raw(1, url=f"{EVIL}/"), raw(2, url=f"{BANK}/in")])
    table.apply("a", report(tabId=3, change="created", tab=raw(3, url="about:blank", openerTabId=1)))
    table.apply("a", report(tabId=3, change="updated", tab=raw(3, url="about:blank", openerTabId=2)))
    assert sites(table)[3] == BANK


def test_document_that_a_frame_created_in_a_popup_is_of_the_frames_site() -> None:
    table = TabTable()
    table.sync("a", [raw(1, url=f"{EVIL}/")])
    popup = raw(3, url="about:blank", openerTabId=1)
    table.apply("a", report(tabId=3, change="created", tab=popup))
    table.apply("a", report(tabId=3, change="updated", tab={**popup, "openerOrigin": BANK}))
    assert sites(table)[3] == BANK
    table.apply("a", report(tabId=3, change="updated", tab={**popup, "title": "Statement"}))
    assert sites(table)[3] == BANK


def test_tab_that_was_opened_empty_by_no_page_is_no_unknown_document() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    table.apply("a", report(tabId=2, change="created", tab=raw(2, url="")))
    table.apply("a", report(tabId=2, change="updated", tab=raw(2, url="about:blank")))
    assert sites(table)[2] == "about:blank"
    table.apply_navigation("a", 2, "data:text/html,x", "", "complete")
    assert sites(table)[2] == "unknown (data:)"
    table.apply_navigation("a", 2, "about:blank", "", "complete")
    assert sites(table)[2] == "unknown (about:)"


def test_tab_is_stopped_from_the_person_pressing_cancel_until_it_is_returned() -> None:
    table = TabTable()
    table.sync("a", [raw(1)])
    (tab,) = table.apply_stop("a", 1).changed
    assert tab.describe()["stopped"] is True
    assert not table.apply_stop("a", 1)
    table.apply("a", report(tabId=1, change="updated", tab=raw(1, stopped=True, title="new")))
    table.disconnect("a")
    table.sync("a", [raw(1, stopped=True)])
    assert [tab.stopped for tab in table] == [True]
    table.apply("a", report(tabId=1, change="updated", tab=raw(1)))
    assert [tab.stopped for tab in table] == [False]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("sync"), st.sampled_from("abc"), st.lists(st.integers(0, 6), max_size=5)),
        st.tuples(st.sampled_from(["created", "removed"]), st.sampled_from("abc"), st.integers(0, 6)),
        st.tuples(st.just("replaced"), st.sampled_from("abc"), st.tuples(st.integers(0, 6), st.integers(0, 6))),
        st.tuples(st.just("disconnect"), st.sampled_from("abc"), st.none()),
    ),
    max_size=30,
)


@given(steps)
def test_a_hub_id_never_names_tabs_of_two_browsers(history: list[tuple[str, str, Any]]) -> None:
    table, owner = TabTable(), dict[int, str]()
    for kind, browser, what in history:
        if kind == "sync":
            table.sync(browser, [raw(n) for n in what])
        elif kind == "disconnect":
            table.disconnect(browser)
        elif kind == "replaced":
            old, new = what
            table.apply(browser, report(tabId=new, change=kind, removedTabId=old, tab=raw(new)))
        else:
            table.apply(browser, report(tabId=what, change=kind, tab=raw(what)))
        tabs = list(table)
        assert len({(tab.browser_id, tab.chrome_id) for tab in tabs}) == len(tabs)
        for tab in tabs:
            assert owner.setdefault(tab.tab_id, tab.browser_id) == tab.browser_id
            assert table.find(tab.browser_id, tab.chrome_id) is tab

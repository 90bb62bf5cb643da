"""Names of external tools: each means one server and tool, whatever their names."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tabhub.core.registry import NAME
from tabhub.core.upstream_names import upstream_name

PLAIN = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
ANY = st.one_of(PLAIN, st.text(min_size=1, max_size=80))


@pytest.mark.req("S001-naming-01")
def test_names_have_the_documented_form() -> None:
    assert upstream_name("weather", "get_weather") == "mcp__weather__get_weather"


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=20))
@example([("a__b", "c"), ("a", "b__c"), ("a_", "_b"), ("a", "__b"), ("_a", "b"), ("a b", "c"), ("a_b", "c")])
@example([("höhe", "maß"), ("h_he", "ma_"), ("x" * 80, "y" * 80), ("x" * 80, "y" * 79)])
@example([("a", "b_h0123456789"), ("a", "b")])
def test_no_two_tools_share_a_name(tools: list[tuple[str, str]]) -> None:
    names = {tool: upstream_name(*tool) for tool in tools}
    assert len(set(names.values())) == len(set(tools))
    for tool, name in names.items():
        assert NAME.fullmatch(name)
        assert name.startswith("mcp__")
        if not re.search(r"_h[0-9a-f]{10}$", name):
            assert name == f"mcp__{tool[0]}__{tool[1]}"
            assert "__" not in tool[0]

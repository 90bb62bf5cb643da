"""Names of page tools: valid, unique and reversible for any site and tool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.pages.tool_names import PageKey, TabNumbers, ToolNamer, domain_of, hashed_name, plain_name
from tabhub.core.registry import NAME

HOSTS = st.sampled_from(
    [
        "https://a.com",
        "http://a.com",
        "https://a.com.b",
        "https://a-com",
        "https://a_com",
        "https://a.com:8443",
        "http://a.com:8443",
        "http://localhost:3000",
        "https://localhost",
        "http://127.0.0.1:9000",
        "http://[::1]:80",
        "https://xn--bcher-kva.example",
        "https://tab1.com",
        "https://a.tab1.com",
        "https://x.a.tab1",
        "file://",
        "https://file",
        f"https://{'long.' * 30}example",
    ]
)
TOOLS = st.one_of(
    st.sampled_from(
        [
            "get",
            "b_get",
            "com_get",
            "tab1_get",
            "tab1",
            "x_tab2_get",
            "a b",
            "a_b",
            "a.b",
            "ü",
            "\u202egnp",
            "__",
            "__proto__",
            "_",
            "-",
            "get_h0123456789",
            "browser_click",
            "x" * 128,
            "x" * 127 + "y",
        ]
    ),
    st.text(min_size=1, max_size=40),
)
KEYS = st.builds(PageKey, HOSTS, st.none() | st.integers(1, 12), TOOLS, st.none() | st.integers(0, 3))


@pytest.mark.req("B15", "B16", "S000-spec-routing-02")
@given(st.lists(KEYS, max_size=40), st.lists(st.integers(0, 39), max_size=10))
def test_every_name_is_valid_and_unique(keys: list[PageKey], gone: list[int]) -> None:
    namer = ToolNamer()
    for key in keys:
        namer.name(key)
    for index in gone:
        if index < len(keys):
            namer.release(keys[index])
    names = {key: namer.name(key) for key in keys}
    assert len(set(names.values())) == len(names)
    for key, name in names.items():
        assert NAME.fullmatch(name)
        assert name.startswith("website_tool_")
        assert namer.name(key) == name


@given(KEYS, KEYS)
def test_names_with_a_tab_do_not_depend_on_the_order_of_registration(one: PageKey, other: PageKey) -> None:
    if one == other or one.number is None or other.number is None:
        return
    first, second = ToolNamer(), ToolNamer()
    names = first.name(one), first.name(other)
    swapped = second.name(other), second.name(one)
    assert names == swapped[::-1]


@pytest.mark.req("S000-spec-registration-03", "S000-flows-05")
@pytest.mark.parametrize(
    ("origin", "number", "tool", "name"),
    [
        ("https://example.com", 1, "getCart", "website_tool_example_com_tab1_getCart"),
        ("https://example.com", None, "getCart", "website_tool_example_com_getCart"),
        ("http://localhost:3000", 2, "add-to_cart", "website_tool_localhost_3000_tab2_add-to_cart"),
        ("http://127.0.0.1:8080", 1, "x", "website_tool_127_0_0_1_8080_tab1_x"),
        ("https://xn--bcher-kva.example", 1, "x", "website_tool_xn--bcher-kva_example_tab1_x"),
        ("file://", 1, "x", "website_tool_file_tab1_x"),
    ],
)
def test_usual_sites_have_plain_names(origin: str, number: int | None, tool: str, name: str) -> None:
    assert ToolNamer().name(PageKey(origin, number, tool)) == name


@pytest.mark.req("B16")
def test_two_sites_with_the_same_label_get_different_names() -> None:
    namer = ToolNamer()
    keys = [
        PageKey("https://shop.com", None, "br_find"),
        PageKey("https://shop.com.br", None, "find"),
        PageKey("http://shop.com", 1, "find"),
        PageKey("https://shop.com", 1, "find"),
        PageKey("https://shop.com", 1, "find", 3),
    ]
    names = [namer.name(key) for key in keys]
    assert len(set(names)) == len(keys)
    assert names[0] == "website_tool_shop_com_br_find"
    assert names[1] == hashed_name(keys[1])
    assert names[3] == "website_tool_shop_com_tab1_find"  # https has the plain name, in any order
    assert plain_name(keys[2]) is None


def test_a_hash_in_use_is_extended() -> None:
    namer = ToolNamer()
    key = PageKey("https://a.com", 1, "ü")
    namer._used.add(hashed_name(key))
    assert namer.name(key) == hashed_name(key, 14)
    assert len(namer.name(key)) <= 64


def test_numbers_are_small_and_stable_and_reused_only_after_the_tab_closed() -> None:
    numbers = TabNumbers()
    assert [numbers.number("https://a.com", tab) for tab in (70, 80, 90)] == [1, 2, 3]
    assert numbers.number("https://b.com", 90) == 1
    assert numbers.number("https://a.com", 80) == 2
    numbers.closed(80)
    assert numbers.number("https://a.com", 90) == 3
    assert numbers.number("https://a.com", 99) == 2
    assert numbers.number("http://a.com", 100) == 4  # its names would look the same
    numbers.closed(12345)


def test_a_tab_has_numbers_at_a_bounded_number_of_sites() -> None:
    numbers = TabNumbers()
    for index in range(1000):
        numbers.number(f"https://s{index}.example", 1)
    assert len(numbers._sites) == 200
    assert numbers.number("https://s999.example", 1) == 1


def test_the_domain_is_host_and_port() -> None:
    assert domain_of("https://shop.example") == "shop.example"
    assert domain_of("http://localhost:3000") == "localhost:3000"
    assert domain_of("file://") == "file"

"""The example shop in a real Chromium, its tools called as a browser with `document.modelContext` calls them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tabhub.cli.demo.command import TOOLS
from tabhub.cli.demo.shop import packaged_shop, serve_shop

# A minimal version of the API that a browser offers to pages; `agent` represents the caller.
STAND_IN = """
  const tools = new Map();
  const context = { registerTool: (tool) => { tools.set(tool.name, tool); } };
  Object.defineProperty(document, "modelContext", { value: context });
  window.agent = {
    tools: () => [...tools.values()].map(({ execute, ...rest }) => rest),
    call: (name, args, client) => tools.get(name).execute(args, client),
  };
"""
SAYS = "{ requestUserInteraction: async (callback, options) => { window.asked = options.message; %s } }"
AGREED = SAYS % "return callback({ confirmed: true });"
REFUSED = SAYS % 'throw new DOMException("no", "NotAllowedError");'


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[..., Browser]]:
    """Start a Chromium with additional switches."""
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        yield lambda *switches: playwright.chromium.launch(
            executable_path=program, chromium_sandbox=False, args=list(switches)
        )


@pytest.fixture(scope="module")
def chromium(launch: Callable[..., Browser]) -> Iterator[Browser]:
    browser = launch()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve_shop(packaged_shop()) as address:
        yield address


@pytest.fixture(scope="module")
def visitor(chromium: Browser, url: str) -> Iterator[tuple[Page, list[str]]]:
    """One tab for all visits, and the errors its pages have logged: a new tab costs far more than a new page."""
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda output: complaints.append(output.text) if output.type in ("error", "warning") else None)
    page.on("request", lambda asked: complaints.append(asked.url) if not asked.url.startswith(url) else None)
    page.add_init_script(STAND_IN)
    page.goto(url)
    yield page, complaints
    page.close()


@pytest.fixture
def shop(visitor: tuple[Page, list[str]], url: str) -> Iterator[Page]:
    """A new visit; any error that the page logs fails the test."""
    page, complaints = visitor
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light")
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    complaints.clear()
    page.goto(url)
    yield page
    assert complaints == []


def call(page: Page, tool: str, client: str = "undefined", **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = page.evaluate(f"(args) => agent.call({tool!r}, args, {client})", arguments)
    return answer


def test_the_shop_declares_its_tools_with_schemas_and_hints(shop: Page) -> None:
    tools = {tool["name"]: tool for tool in shop.evaluate("agent.tools()")}
    form = shop.evaluate("document.querySelector('form[toolname]').getAttribute('toolname')")
    assert {*tools, form} == set(TOOLS)
    assert tools["search_products"]["annotations"] == {"readOnlyHint": True, "cache": True}
    assert tools["get_cart"]["annotations"]["readOnlyHint"] is True
    assert tools["checkout"]["annotations"]["destructiveHint"] is True
    assert set(tools["search_products"]["inputSchema"]["properties"]) == {"query", "maxPrice"}
    assert tools["add_to_cart"]["inputSchema"]["required"] == ["productId"]


def test_a_visit_can_opt_out_of_persistence(shop: Page, url: str) -> None:
    shop.goto(f"{url}?cache=off")
    cached = [tool["name"] for tool in shop.evaluate("agent.tools()") if tool["annotations"].get("cache")]
    assert cached == []


def test_a_search_returns_results_and_shows_them_on_the_page(shop: Page) -> None:
    answer = call(shop, "search_products", query="light", maxPrice=30)
    found = [product["productId"] for product in answer["structuredContent"]["products"]]
    assert found == ["head-torch", "beeswax-candles"]
    assert "Head torch, €29.00 (head-torch)" in answer["content"][0]["text"]
    assert shop.locator(".product:visible h3").all_inner_texts() == ["Head torch", "Beeswax candles"]
    assert shop.locator(".product.glow").count() == 2
    assert 'search_products(query: "light", maxPrice: 30)' in shop.locator("#steps").inner_text()
    assert call(shop, "search_products", query="zeppelin")["structuredContent"] == {"products": []}
    assert shop.locator("#nothing").is_visible()


def test_the_cart_total_is_exact_and_coupons_apply(shop: Page) -> None:
    call(shop, "add_to_cart", productId="storm-lantern", quantity=2)
    call(shop, "add_to_cart", productId="field-notebook")
    shop.fill("#code", "lantern10")
    shop.click("#coupon button")
    cart = call(shop, "get_cart")["structuredContent"]
    assert [(item["productId"], item["quantity"]) for item in cart["items"]] == [
        ("storm-lantern", 2),
        ("field-notebook", 1),
    ]
    assert (cart["subtotal"], cart["discount"], cart["total"]) == (108.5, 10.85, 97.65)
    assert shop.locator("#cart-count").inner_text() == "3"
    assert "€97.65" in shop.locator("#sums").inner_text()
    shop.reload()
    assert shop.locator("#cart-count").inner_text() == "3"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"productId": "zeppelin"}, 'There is no product "zeppelin"'),
        ({"productId": "enamel-mug", "quantity": 0}, "quantity must be a whole number"),
        ({"productId": "enamel-mug", "quantity": 1.5}, "quantity must be a whole number"),
        ({"productId": "enamel-mug", "quantity": 21}, "At most 20"),
    ],
)
def test_shop_errors_explain_the_reason(shop: Page, arguments: dict[str, Any], output: str) -> None:
    answer = call(shop, "add_to_cart", **arguments)
    assert answer["isError"] is True
    assert output in answer["content"][0]["text"]
    assert shop.locator("#steps li.failed").count() == 1
    assert call(shop, "checkout")["isError"] is True  # the cart is still empty


def test_an_order_needs_confirmation_through_the_mcp_client(shop: Page) -> None:
    call(shop, "add_to_cart", productId="enamel-mug", quantity=2)
    refused = call(shop, "checkout", REFUSED)
    assert refused["structuredContent"] == {"ordered": False}
    assert shop.evaluate("window.asked") == "Order 2 items for €28.00 at Larch & Lantern?"
    assert shop.locator("#cart-count").inner_text() == "2"
    ordered = call(shop, "checkout", AGREED)["structuredContent"]
    assert (ordered["ordered"], ordered["total"]) == (True, 28)
    assert ordered["orderNumber"] in shop.locator("#receipt").inner_text()
    assert shop.locator("#cart-count").inner_text() == "0"


@pytest.mark.parametrize("client", ["undefined", "{ requestUserInteraction: (callback) => callback() }"])
@pytest.mark.parametrize(("button", "ordered"), [("#ask-yes", True), ("#ask-no", False)])
def test_without_elicitation_the_page_asks(shop: Page, client: str, button: str, ordered: bool) -> None:
    call(shop, "add_to_cart", productId="enamel-mug")
    shop.evaluate(f"() => {{ window.answer = agent.call('checkout', {{}}, {client}); }}")
    shop.locator("#ask-total", has_text="€14.00").wait_for()
    shop.click(button)
    assert shop.evaluate("window.answer")["structuredContent"]["ordered"] is ordered
    assert shop.locator("#ask").is_hidden()


def test_a_person_can_use_the_shop_without_an_agent(shop: Page) -> None:
    shop.fill("#query", "wool")
    shop.click("#search button")
    shop.click("#product-hiking-socks .add")
    shop.click("#lines button[aria-label='One more: Hiking socks']")
    assert "€36.00" in shop.locator("#sums").inner_text()
    shop.click("#checkout")
    shop.click("#ask-yes")
    assert "€36.00" in shop.locator("#receipt").inner_text()
    assert shop.locator("#steps li").count() == 0


def test_native_webmcp_finds_and_runs_all_five_tools(launch: Callable[..., Browser], url: str) -> None:
    run = """async ([name, args]) => {
      const tools = await document.modelContext.getTools();
      return JSON.parse(await document.modelContext.executeTool(tools.find((tool) => tool.name === name), args));
    }"""
    browser = launch("--enable-features=WebMCP")
    page = browser.new_page()
    page.goto(url)
    names = page.evaluate("document.modelContext.getTools().then((tools) => tools.map((tool) => tool.name))")
    assert set(names) == set(TOOLS)
    page.evaluate(run, ["add_to_cart", {"productId": "enamel-mug"}])
    coupon = page.evaluate(run, ["apply_coupon", {"code": "LANTERN10"}])
    assert coupon["content"][0]["text"] == "LANTERN10: 10 % off."
    assert page.evaluate(run, ["get_cart", {}])["structuredContent"]["total"] == 12.6
    assert "apply_coupon" in page.locator("#steps").inner_text()
    browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_overflows_the_window(shop: Page, scheme: Any, width: int) -> None:
    shop.set_viewport_size({"width": width, "height": 700})
    shop.emulate_media(color_scheme=scheme)
    shop.reload()
    call(shop, "search_products", query="light")
    call(shop, "add_to_cart", productId="storm-lantern", quantity=20)
    assert shop.evaluate("document.documentElement.scrollWidth") == width

"""Changes in the panel that the hub or the worker has not confirmed yet are shown at once, and stay shown."""

from __future__ import annotations

from playwright.async_api import Browser, Page, expect

from tests.extension.panelpage import asked, panel

FRAMES = "for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);"


async def release(page: Page, method: str) -> None:
    """Let the fake hub answer the oldest held request, and the panel render."""
    await page.evaluate(f"async () => {{ panelFake.held['{method}'].shift()(); {FRAMES} }}")


async def hold(page: Page, *methods: str) -> None:
    for method in methods:
        await page.evaluate(f"panelFake.held['{method}'] = []")


async def wait_held(page: Page, method: str, count: int = 1) -> None:
    await page.wait_for_function(f"panelFake.held['{method}'].length === {count}")


async def test_a_switch_keeps_its_position_while_the_hub_sends_an_older_state(browser: Browser, address: str) -> None:
    async with panel(browser, address, "servers") as page:
        switch = page.get_by_role("switch", name="Use files")
        await hold(page, "upstream.set")
        await switch.uncheck(force=True)
        before = len(await asked(page, "config.getState"))
        await page.evaluate(f"async () => {{ panelFake.event('panel.changed', {{}}); {FRAMES} }}")
        assert len(await asked(page, "config.getState")) > before
        await expect(switch).not_to_be_checked()
        await page.evaluate("panelFake.state.upstream.find(({ name }) => name === 'files').enabled = false")
        await release(page, "upstream.set")
        await expect(page.locator("[data-server=files]")).to_contain_text("disabled")
        await expect(switch).not_to_be_checked()


async def test_a_state_requested_before_the_answer_does_not_undo_a_change(browser: Browser, address: str) -> None:
    async with panel(browser, address, "servers") as page:
        await page.locator("[data-server=files]").get_by_role("button", name="Tools", exact=True).click()
        switch = page.get_by_role("switch", name="Enable Write a file")
        await hold(page, "upstream.set", "config.getState")
        await switch.uncheck(force=True)
        await page.evaluate("panelFake.event('panel.changed', {})")
        await wait_held(page, "config.getState")
        await release(page, "upstream.set")
        await release(page, "config.getState")  # still without the change
        await expect(switch).not_to_be_checked()
        await wait_held(page, "config.getState")
        await page.evaluate("panelFake.state.upstream[0].tools[1].enabled = false")
        await release(page, "config.getState")
        await expect(switch).not_to_be_checked()
        assert await asked(page, "upstream.set") == [{"name": "files", "disabledTools": ["mcp__files__write_file"]}]


async def test_two_changes_of_one_list_include_each_other(browser: Browser, address: str) -> None:
    async with panel(browser, address, "servers") as page:
        await page.locator("[data-server=files]").get_by_role("button", name="Tools", exact=True).click()
        await hold(page, "upstream.set")
        for title in ("Read a file", "Write a file"):
            await page.get_by_role("switch", name=f"Enable {title}").uncheck(force=True)
        sent = [params["disabledTools"] for params in await asked(page, "upstream.set")]
        assert sent == [["mcp__files__read_file"], ["mcp__files__read_file", "mcp__files__write_file"]]


async def test_a_refused_change_is_undone_and_reported(browser: Browser, address: str) -> None:
    async with panel(browser, address, "settings", kind="quiet") as page:
        await page.evaluate("panelFake.refuse = {'config.set': 'The settings cannot be written.'}")
        switch = page.get_by_role("switch", name="Keep tabs when a session ends")
        await switch.click(force=True)
        await expect(page.locator("#notice")).to_contain_text("The settings cannot be written.")
        await expect(switch).not_to_be_checked()


async def test_a_change_of_the_relay_is_shown_until_the_worker_confirms_it(browser: Browser, address: str) -> None:
    async with panel(browser, address, "settings") as page:
        switch = page.get_by_role("switch", name="Relay only")
        await hold(page, "relay.set")
        await switch.check(force=True)
        off = "url: '', hasToken: false, level: 'ask', sites: [], instead: false"
        unchanged = f"{{{off}, phase: 'off', agents: 0, questions: []}}"
        await page.evaluate(f"async () => {{ panelFake.event('relay.changed', {unchanged}); {FRAMES} }}")
        await expect(switch).to_be_checked()
        await release(page, "relay.set")
        await expect(switch).to_be_checked()
        await page.evaluate("panelFake.refuse = {'relay.set': 'The relay settings cannot be stored.'}")
        await hold(page, "relay.set")
        await switch.uncheck(force=True)
        await release(page, "relay.set")
        await expect(page.locator("#notice")).to_contain_text("The relay settings cannot be stored.")
        await expect(switch).to_be_checked()

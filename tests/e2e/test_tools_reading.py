"""Reading tools in a real browser, in background tabs: text, HTML, elements, screenshots, PDF."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from tests.e2e import png
from tests.e2e.live import Caller
from tests.e2e.png import Picture
from tests.e2e.site import Site
from tests.e2e.zoo import Zoo

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 255, 0)
YELLOW, CYAN, MAGENTA, WHITE = (255, 255, 0), (0, 255, 255), (255, 0, 255), (255, 255, 255)
MARKS = ((0xD6, 0, 0x6C), (0x0B, 0x57, 0xD0), (0x0A, 0x7D, 0x33), (0xB3, 0x53, 0x0A), (0x7B, 0x2C, 0xBF))


def written(result: dict[str, Any]) -> bytes:
    """The file that a tool wrote."""
    return Path(result["filePath"]).read_bytes()


async def picture(agent: Caller, **how: Any) -> Picture:
    answer = await agent.call("browser_screenshot_tab", **how)
    assert not answer.get("isError"), answer
    return png.read(base64.b64decode(answer["content"][0]["data"]))


async def test_content_includes_the_text_of_all_frames_in_place(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("see_article.html"))
    content = (await guest.get("browser_get_tab_content"))["content"]
    parts = [
        "The article",
        "Before the frames, boldly.",
        "Inner words",
        "Between",
        "Far words",
        "After",
        "In the shadow",
    ]
    places = [content.index(part) for part in parts]
    assert places == sorted(places)
    assert "hidden words" not in content
    assert content.count("Inner words") == 1
    assert f"[frame {zoo.elsewhere}/pages/see_frame.html]" in content
    assert "\x03" not in content
    assert "zerowidth and turned words" in content


async def test_content_of_one_element_is_read_by_selector_text_and_ref(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("see_article.html"))
    marked = await guest.get("browser_get_tab_content", selector="#first", format="markdown")
    assert marked["content"] == "Before the frames, **boldly**."
    assert (await guest.get("browser_get_tab_content", selector="#inside"))["content"] == "In the shadow"
    far = await guest.get("browser_get_tab_content", text="Far button")
    assert (far["content"], far["url"]) == ("Far button", f"{zoo.elsewhere}/pages/see_frame.html")
    (found,) = (await guest.get("browser_query_elements", selector="#first"))["elements"]
    assert (await guest.get("browser_get_tab_content", ref=found["ref"]))["content"].startswith("Before")
    missing = await guest.fail("browser_get_tab_content", selector="#firstt")
    assert "#first" in missing["text"]


async def test_content_is_truncated_and_reports_the_remainder(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("see_article.html"))
    whole = await guest.get("browser_get_tab_content")
    assert (whole["remaining"], whole["length"]) == (0, len(whole["content"]))
    part = await guest.get("browser_get_tab_content", maxLength=60)
    assert len(part["content"]) == 60
    assert part["content"] == whole["content"][:60]
    assert part["length"] == whole["length"]
    assert part["remaining"] == whole["length"] - 60


async def test_the_main_content_comes_first_with_its_headings_and_the_rest_of_the_page_follows(
    guest: Caller, zoo: Zoo
) -> None:
    await guest.visit(f"{zoo.url}/other")
    await guest.run(
        "document.body.innerHTML = `<nav><a href=/>Home</a></nav><main><h1>Cats</h1><p>They purr.</p>"
        "<h2>Food</h2><pre>a   b\n\n\n\tc</pre><p>Fish&nbsp; and mice.</p></main><footer>Imprint</footer>`"
    )
    content = (await guest.get("browser_get_tab_content"))["content"]
    assert content == (
        "Cats\n\nThey purr.\n\nFood\n\na   b\n\n\n\tc\n\nFish  and mice.\n\n"
        "[outside the main content]\n\nHome\n\nImprint"
    )
    assert (await guest.get("browser_get_tab_content", outline=True))["content"] == "0 Cats\n 18 Food"
    assert content[18:].startswith("Food")
    found = (await guest.get("browser_get_tab_content", search="mice"))["content"]
    assert "## Food\n[" in found
    assert "Fish  and mice." in found
    on = await guest.get("browser_get_tab_content", offset=18, maxLength=11)
    assert (on["content"], on["remaining"]) == (content[18:29], len(content) - 29)
    marked = (await guest.get("browser_get_tab_content", format="markdown"))["content"]
    assert marked.startswith("# Cats\n\nThey purr.\n\n## Food\n\n```\na   b\n\n\n\tc\n```\n\nFish  and mice.")


async def test_html_includes_shadow_roots_and_elements_in_any_frame(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("see_article.html"))
    page = await guest.get("browser_get_page_html")
    assert page["html"].startswith('<!DOCTYPE html>\n<html lang="en">')
    assert (
        '<my-card><template shadowrootmode="open"><p id="inside">In the shadow</p></template></my-card>' in page["html"]
    )
    assert (page["shadowRoots"], page["frames"], page["remaining"]) == (1, 3, 0)
    card = await guest.get("browser_get_page_html", selector="my-card")
    assert card["html"].startswith('<my-card><template shadowrootmode="open">')
    far = await guest.get("browser_get_page_html", selector="#go")
    assert far["html"].startswith('<button id="go"')
    assert far["html"].endswith(">Far button</button>")
    part = await guest.get("browser_get_page_html", maxLength=20)
    assert (len(part["html"]), part["remaining"]) == (20, page["length"] - 20)


async def test_elements_are_listed_across_frames_with_viewport_boxes(guest: Caller, zoo: Zoo) -> None:
    await guest.read(zoo.at("see_boxes.html"))
    found = await guest.get("browser_query_elements", selector="button, a", attributes=["id", "href", "title"])
    assert found["total"] == 5
    one, two, covered, _, far = found["elements"]
    assert (one["tag"], one["text"], one["visible"], one["role"]) == ("button", "First", True, "button")
    assert one["box"] == {"x": 100, "y": 50, "width": 120, "height": 40}
    assert one["attributes"] == {"id": "one", "href": None, "title": None}
    assert two["attributes"]["href"] == zoo.at("see_boxes.html#x")
    assert covered["text"] == "Covered"
    assert far["frame"] == f"{zoo.elsewhere}/pages/see_frame.html"
    assert far["box"] == {"x": 400 + 5 + 150, "y": 150 + 5 + 100, "width": 80, "height": 30}
    few = await guest.get("browser_query_elements", selector="button, a", limit=2)
    assert (len(few["elements"]), few["note"][:6]) == (2, "3 more")
    named = await guest.get("browser_query_elements", role="button", text="far")
    assert [element["text"] for element in named["elements"]] == ["Far button"]
    none = await guest.get("browser_query_elements", selector="#onne")
    assert (none["total"], "#one" in none["note"]) == (0, True)
    assert "not valid CSS" in (await guest.fail("browser_query_elements", selector="##"))["text"]


async def test_an_element_of_a_background_tab_is_captured(agent: Caller, zoo: Zoo) -> None:
    tab = await agent.open(zoo.at("see_boxes.html"))
    red = await picture(agent, selector="#red")
    assert (red.width, red.height) == (200, 100)
    assert {red.at(x, y) for x in (0, 199) for y in (0, 99)} == {RED}
    bottom = await picture(agent, text="Bottom")
    assert (bottom.width, bottom.height, bottom.at(1, 1)) == (120, 40, WHITE)
    assert (await agent.get("browser_get_tab_info", tabId=tab))["active"] is False


async def test_elements_in_scrolled_containers_and_cross_site_frames_are_captured(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    low = await picture(guest, selector="#low")
    assert (low.width, low.height) == (60, 30)
    assert {low.at(x, y) for x in (0, 59) for y in (0, 29)} == {CYAN}
    green = await picture(guest, selector="#green")
    assert (green.width, green.height) == (100, 50)
    assert {green.at(x, y) for x in (0, 99) for y in (0, 49)} == {GREEN}
    deep = await picture(guest, selector="#deep")
    assert (deep.width, deep.height) == (60, 20)
    assert {deep.at(x, y) for x in (0, 59) for y in (0, 19)} == {MAGENTA}
    double = await picture(guest, selector="#green", scale=2)
    assert (double.width, double.height, double.at(195, 95)) == (200, 100, GREEN)


async def test_full_page_screenshots_reach_beyond_the_viewport(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    whole = await picture(guest, fullPage=True)
    assert whole.height == 2400
    assert (whole.at(110, 2010), whole.at(10, 2390), whole.at(405 + 35, 155 + 45)) == (WHITE, BLUE, GREEN)
    half = await picture(guest, fullPage=True, scale=0.5)
    assert (half.height, half.at(55, 1005)) == (1200, WHITE)


async def test_marks_are_drawn_on_actionable_elements_and_removed(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    answer = await guest.call("browser_screenshot_tab", annotate=True)
    shot = png.read(base64.b64decode(answer["content"][0]["data"]))
    lines = answer["content"][-1]["text"].split("\n")
    assert [line.rsplit(" [", 1)[0] for line in lines] == ['button "First"', 'link "Second"', 'button "Far button"']
    # The left border of each box, and its inside.
    assert shot.at(100, 70) in MARKS
    assert shot.at(104, 55) == WHITE
    assert shot.at(300, 70) in MARKS
    assert shot.at(555, 270) in MARKS
    assert shot.at(500, 70) not in MARKS
    # The label of the first one, above it.
    assert any(shot.at(x, 44) == shot.at(100, 70) for x in range(100, 115))
    after = await picture(guest)
    assert (after.at(100, 70), after.at(105, 44)) == (WHITE, BLUE)
    assert await guest.run("return [...document.documentElement.children].slice(2).map((e) => e.outerHTML)") == []
    ref = lines[0].rsplit("[", 1)[1].rstrip("]")
    assert (await guest.get("browser_get_tab_content", ref=ref))["content"] == "First"


async def test_marks_work_for_full_pages_and_files(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    name = f"{zoo.port}/marked.png"
    answer = await guest.call("browser_screenshot_tab", annotate=True, fullPage=True, filePath=name)
    shot = png.read(written(answer["structuredContent"]))
    assert shot.at(100, 2020) in MARKS
    assert 'button "Bottom"' in answer["content"][-1]["text"]


async def test_screenshots_have_three_formats(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    for kind, head in (("jpeg", b"\xff\xd8\xff"), ("webp", b"RIFF"), ("png", b"\x89PNG")):
        answer = await guest.call("browser_screenshot_tab", format=kind, selector="#red")
        image = answer["content"][0]
        data = base64.b64decode(image["data"])
        assert (image["mimeType"], data[: len(head)]) == (f"image/{kind}", head)
        assert answer["structuredContent"]["bytes"] == len(data)
    small, large = [
        (await guest.get("browser_screenshot_tab", format="jpeg", quality=quality))["bytes"] for quality in (5, 95)
    ]
    assert small < large


async def test_a_page_is_printed_to_a_new_file(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    result = await guest.get("browser_save_pdf", options={"margins": 1, "paper": "a5"})
    data = written(result)
    assert data.startswith(b"%PDF-")
    assert (len(data), result["filePath"].endswith(".pdf")) == (result["bytes"], True)
    assert result["pages"] > 1
    again = await guest.get("browser_save_pdf", options={"pageRanges": "1"})
    assert again["filePath"] != result["filePath"]
    assert again["pages"] == 1
    wide = await guest.get(
        "browser_save_pdf",
        filePath=f"{zoo.port}/wide.pdf",
        options={"landscape": True, "paper": "a4", "margins": {"top": 2}},
    )
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", written(wide))
    assert box is not None
    assert abs(float(box[1]) - 842) < 2
    assert abs(float(box[2]) - 595) < 2
    taken = await guest.fail("browser_save_pdf", filePath=f"{zoo.port}/wide.pdf")
    assert "exists already" in taken["text"]
    assert "pageRanges" in (await guest.fail("browser_save_pdf", options={"pageRanges": "99"}))["text"]
    assert "margins" in (await guest.fail("browser_save_pdf", options={"margins": 40}))["text"]


async def test_nested_frames_are_read_marked_and_captured(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_nested.html"))
    content = (await guest.get("browser_get_tab_content"))["content"]
    parts = ["Outermost words", "Middle words", "Far words", "Middle end", "Last words"]
    places = [content.index(part) for part in parts]
    assert places == sorted(places)
    green = await picture(guest, selector="#green")
    assert (green.width, green.height) == (100, 50)
    assert {green.at(x, y) for x in (0, 99) for y in (0, 49)} == {GREEN}
    deep = await picture(guest, selector="#deep")
    assert {deep.at(x, y) for x in (0, 59) for y in (0, 19)} == {MAGENTA}
    answer = await guest.call("browser_screenshot_tab", annotate=True, text="Far button")
    assert answer["content"][-1]["text"].startswith('button "Far button"')
    assert png.read(base64.b64decode(answer["content"][0]["data"])).at(0, 15) in MARKS
    await guest.run(
        "const d = document.createElement('dialog'); d.innerHTML = '<button>Yes</button>';"
        "document.body.append(d); d.showModal()"
    )
    over = await guest.call("browser_screenshot_tab", annotate=True)
    assert [line.split(" [")[0] for line in over["content"][-1]["text"].split("\n")] == ['button "Yes"']


async def test_frames_below_the_viewport_are_in_full_page_screenshots(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_nested.html"))
    await guest.run("scrollTo(0, 300); addEventListener('scroll', () => { window.moved = true; })")
    answer = await guest.call("browser_screenshot_tab", fullPage=True, annotate=True)
    shot = png.read(base64.b64decode(answer["content"][0]["data"]))
    (button,) = (await guest.get("browser_query_elements", text="Far button", role="button"))["elements"]
    left, top = round(button["box"]["x"]), round(button["box"]["y"]) + 300
    assert shot.at(left, top + 15) in MARKS
    assert shot.at(left - 150 + 35, top - 100 + 45) == GREEN
    assert await guest.run("return [scrollY, innerHeight < 1000]") == [300, True]
    await guest.get("browser_emulate_device", width=600, height=500)
    phone = await guest.get("browser_screenshot_tab", fullPage=True)
    assert (phone["width"], phone["height"] > 1900) == (585, True)
    assert await guest.run("return [innerWidth, innerHeight]") == [600, 500]


async def test_a_page_with_the_strictest_csp_can_be_read(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/strict")
    assert (await guest.get("browser_get_tab_content"))["content"] == "strict words"
    assert "<h1>strict words</h1>" in (await guest.get("browser_get_page_html"))["html"]
    assert (await guest.get("browser_query_elements", selector="h1"))["total"] == 1
    await guest.run("document.querySelector('h1').setAttribute('tabindex', '0')")
    answer = await guest.call("browser_screenshot_tab", annotate=True, selector="h1")
    shot = png.read(base64.b64decode(answer["content"][0]["data"]))
    assert shot.at(1, shot.height // 2) in MARKS
    assert (await guest.get("browser_save_pdf"))["pages"] == 1
    assert (await guest.get("browser_set_storage", storageType="session", key="a", value="b"))["replaced"] is False


async def test_an_element_of_a_static_page_can_be_captured_repeatedly(guest: Caller, site: Site) -> None:
    for _ in range(2):
        await guest.visit(f"{site.url}/strict")
        await guest.run("document.querySelector('h1').setAttribute('tabindex', '0')")
        html = (await guest.get("browser_get_page_html"))["html"]
        plain = [await picture(guest, selector="h1") for _ in range(3)]
        marked = [await picture(guest, selector="h1", annotate=True) for _ in range(4)]
        assert plain == plain[:1] * 3
        assert marked == marked[:1] * 4
        assert marked[0].at(1, marked[0].height // 2) in MARKS
        assert (await guest.get("browser_get_page_html"))["html"] == html


async def test_a_screenshot_that_is_too_large_has_a_hint(guest: Caller, site: Site) -> None:
    await guest.visit(f"{site.url}/other")
    await guest.run(
        "const c = document.createElement('canvas'); c.width = c.height = 2000; document.body.append(c);"
        "const x = c.getContext('2d'), d = x.createImageData(2000, 2000);"
        "const words = new Uint32Array(d.data.buffer), most = 16384;"
        "for (let at = 0; at < words.length; at += most) crypto.getRandomValues(words.subarray(at, at + most));"
        "for (let at = 0; at < words.length; at += 1) words[at] |= 0xff000000;"
        "x.putImageData(d, 0, 0);"
    )
    refused = await guest.fail("browser_screenshot_tab", fullPage=True)
    assert "jpeg" in refused["text"]
    small = await guest.get("browser_screenshot_tab", fullPage=True, format="jpeg", scale=0.5)
    assert small["bytes"] > 1000

"""Wagtail: an agent logs in, writes a page with rich text and a picture, and publishes it; it is in the database."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.apps.app_agent import AppAgent
from tests.apps.installation import install, python_of
from tests.apps.servers import AppServer, run, serving
from tests.e2e.live import LiveHub
from tests.harness.ports import free_port

PROJECT = Path(__file__).parent / "projects" / "wagtail"
PASSWORD = "correct horse"
PICTURE = (PROJECT / "harbour.png").read_bytes()


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    install("wagtail")
    folder, port = tmp_path_factory.mktemp("wagtail") / "site", free_port()
    shutil.copytree(PROJECT, folder)
    environment = {
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": str(folder),
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
    }
    django = [python_of("wagtail"), "-m", "django"]
    for words in (
        ["makemigrations", "news"],
        ["migrate", "--verbosity", "0"],
        ["createsuperuser", "--noinput", "--username", "editor", "--email", "editor@example.com"],
    ):
        run([*django, *words], folder, environment)
    command = [*django, "runserver", "--noreload", f"127.0.0.1:{port}"]
    with serving(command, folder, f"http://127.0.0.1:{port}", environment, "/admin/login/") as server:
        yield server


def rows(news: AppServer, query: str) -> list[tuple[Any, ...]]:
    """What a query finds in the site's database."""
    with closing(sqlite3.connect(news.folder / "db.sqlite3")) as database:
        return database.execute(query).fetchall()


async def test_a_page_with_rich_text_and_a_picture_is_published(agent: AppAgent, news: AppServer, hub: LiveHub) -> None:
    (hub.home / "files").mkdir(exist_ok=True)
    (hub.home / "files" / "harbour.png").write_bytes(PICTURE)
    await agent.do("browser_open_tab", url=f"{news.url}/admin/")
    login = [{"label": "Username", "value": "editor"}, {"label": "Password", "value": PASSWORD}]
    await agent.do("browser_fill_form", fields=login)
    await agent.click(text="Sign in", role="button")
    await agent.click(text="1 Page created in News")
    await agent.click(text="Add child page")
    fields = [{"label": "Date", "value": "March 14, 2027"}, {"label": "Title", "value": "Harbour opens"}]
    date, _ = (await agent.do("browser_fill_form", fields=fields))["fields"]
    assert "The page changed it" in date["note"]  # to today's date
    await agent.do("browser_fill_form", fields=[{"label": "Date", "value": "2027-03-14"}])
    body = await agent.ref("textbox", selector="[aria-labelledby=panel-child-content-body-heading]")
    typed = await agent.do("browser_type_text", ref=body, text="The harbour opens today.\nTickets are free.")
    assert typed["value"] == "The harbour opens today.\nTickets are free."
    await agent.act({"action": "press_key", "key": "Control+b"}, {"action": "type_text", "text": " Come early."})

    await agent.click(text="Choose an image", role="button")
    await agent.click(text="Upload", role="tab")
    await agent.do("browser_upload_file", label="File", paths=["harbour.png"])
    (title,) = await agent.lines('textbox "Title*"', selector="[role=dialog]")
    assert title.endswith('= "harbour"')
    await agent.click(text="Upload", role="button")
    await agent.wait(text="Choose an image", gone=True)

    await agent.click(text="More actions")
    published = await agent.click(text="Publish", role="button")
    assert published["navigated"].startswith(f"{news.url}/admin/pages/")
    await agent.wait(text="View live", role="link")
    ((live, draft, slug, date, html, file),) = rows(
        news,
        "select live, has_unpublished_changes, slug, date, body, file from wagtailcore_page "
        "join news_article on page_ptr_id = wagtailcore_page.id join wagtailimages_image as i on i.id = picture_id",
    )
    assert (live, draft, slug, date) == (1, 0, "harbour-opens", "2027-03-14")
    assert re.sub(" data-block-key=[^>]*", "", html) == (
        "<p>The harbour opens today.</p><p>Tickets are free.<b> Come early.</b></p>"
    )
    assert (news.folder / "media" / file).read_bytes() == PICTURE

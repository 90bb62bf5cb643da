"""Wagtail: an agent logs in, writes a page with rich text and a picture, and publishes it; it is in the database."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.apps.installation import install, python_of
from tests.apps.servers import AppServer, run, serving
from tests.harness.ports import free_port

PROJECT = Path(__file__).parent / "projects" / "wagtail"
PASSWORD = "correct horse"


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

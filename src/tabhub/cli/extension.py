"""`tabhub extension`: where the browser extension is, and how to load it. The hub installs the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from tabhub.cli.command import Command, Group
from tabhub.cli.hub.client import home
from tabhub.client_errors import UsageError


def _folder() -> Path:
    folder = Path(home(), "extension")
    if not (folder / "manifest.json").is_file():
        raise UsageError(
            f"The extension is not installed yet in {folder}.",
            "The hub installs it when it starts: tabhub start --background",
        )
    return folder


def show_path(_args: Namespace) -> None:
    print(_folder())


def open_folder(_args: Namespace) -> None:
    folder = _folder()
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if program and display:
        null = subprocess.DEVNULL
        subprocess.Popen([program, str(folder)], stdin=null, stdout=null, stderr=null, start_new_session=True)
        print(f"Opened {folder}\n")
    else:
        print(f"The extension is in {folder}\n(It cannot be opened here: there is no desktop.)\n")
    print("To load it into Chrome, Chromium, Edge or Brave:")
    print("  1. Open chrome://extensions and switch on Developer mode.")
    print("  2. Click Load unpacked and choose the folder above.")
    print("It connects by itself; check with `tabhub status`.")


COMMAND = Group(
    {
        "path": Command(show_path, summary="Print the folder of the extension"),
        "open": Command(open_folder, summary="Open that folder and explain how to load the extension"),
    },
    examples=(("tabhub extension path", "the folder, for `Load unpacked`"),),
)

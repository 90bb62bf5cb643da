"""`tabhub extension`: where the browser extension is, and how to load it.

Owns the instructions for loading it. The hub installs the files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tabhub.cli.command import Command, Group
from tabhub.cli.hub.client import home
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import Namespace


def _folder() -> Path:
    folder = Path(home(), "extension")
    if not (folder / "manifest.json").is_file():
        raise CliError(
            f"The extension is not installed yet in {folder}.",
            "The hub puts it there when it starts: tabhub start --background",
            exit_code=2,
        )
    return folder


def show_path(_args: Namespace) -> int:
    print(_folder())
    return 0


def open_folder(_args: Namespace) -> int:
    folder = _folder()
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(opener)
    display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if program and display:
        subprocess.Popen(
            [program, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        print(f"Opened {folder}\n")
    else:
        print(f"The extension is in {folder}\n(no desktop here to open it in)\n")
    print("To load it into Chrome, Chromium, Edge or Brave:")
    print("  1. Open chrome://extensions and switch on Developer mode.")
    print("  2. Click Load unpacked and choose the folder above.")
    print("It connects by itself: `tabhub status` shows it.")
    return 0


COMMAND = Group(
    "Find the browser extension and load it.",
    {
        "path": Command("Print the folder of the extension", show_path),
        "open": Command("Open that folder and explain how to load the extension", open_folder),
    },
    examples=(("tabhub extension path", "the folder, for `Load unpacked`"),),
)

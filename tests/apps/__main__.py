"""`make apps`: install the apps that are named, or all, and run an agent's tasks in them.

python -m tests.apps                        all apps
python -m tests.apps streamlit -x           one, with further arguments for pytest
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from tests.apps import installation
from tests.apps.installation import APPS, ROOT

TASKS = {
    "node-red": "test_node_red.py",
    "jupyterlab": "app_jupyterlab.py",
    "streamlit": "app_streamlit.py",
    "wagtail": "app_wagtail.py",
}


def main(arguments: Sequence[str]) -> int:
    apps = [each for each in arguments if not each.startswith("-")] or list(APPS)
    if code := installation.main(apps):
        return code
    files = [f"tests/apps/{TASKS[app]}" for app in apps]
    options = [each for each in arguments if each.startswith("-")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--durations=0", *files, *options], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The command line of a managed browser.

Owns which switches are given and why. Pure: it is told what the machine is like and starts nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tabhub.errors import SetupError
from tabhub.links.launch.installed_browsers import FoundBrowser

Loading = Literal["switch", "pipe"]
"""How the extension gets in: `--load-extension`, or over the debugging pipe, which branded browsers insist on."""

_NOBODY = "http://127.0.0.1:9"
_ALWAYS = (
    # The pipe is inherited by this one process, so no other program can reach it, as it could a port. It also ties
    # the browser's life to ours: when the other end closes, for whatever reason, the browser ends.
    "--remote-debugging-pipe",
    # nothing that asks the person before a page can be used
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-search-engine-choice-screen",
    "--hide-crash-restore-bubble",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    # the person chose this browser to be controlled: no banner that changes the size of pages
    "--silent-debugger-extension-api",
    # no calls home
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    "--no-service-autorun",
    # two askers that heed none of the above: sent to a port where nobody answers
    f"--component-updater=url-source={_NOBODY}/",
    f"--gaia-url={_NOBODY}",
    # tabs that no one looks at work as fast as those in front: agents use background tabs
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)
_FEATURES_OFF = (
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "DisableLoadExtensionCommandLineSwitch",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHints",
    "OptimizationHintsFetching",
    "Translate",
)
_HEADLESS = ("--headless=new", "--window-size=1280,800", "--mute-audio")
_OURS = {
    "--remote-debugging-port": "no debugging port is ever opened",
    "--remote-debugging-address": "no debugging port is ever opened",
    "--remote-debugging-pipe": "the hub holds the pipe itself",
    "--user-data-dir": "the managed browser has its own profile",
    "--load-extension": "the hub loads its own extension",
    "--disable-extensions": "the hub reaches the browser through its extension",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the switches depend on beside the browser."""

    root: bool
    small_shm: bool


def parse_extra(text: str) -> list[str]:
    """Split TABHUB_BROWSER_ARGS as a shell would; refuse what would undo what the hub relies on."""
    try:
        extra = shlex.split(text)
    except ValueError as error:
        raise SetupError(f"TABHUB_BROWSER_ARGS cannot be read: {error}.", hint="See to its quotes.") from None
    for switch in extra:
        name = switch.partition("=")[0]
        if not switch.startswith("--") or switch == "--":
            raise SetupError(
                f"TABHUB_BROWSER_ARGS holds {switch!r}, which is not a switch.", hint="Write --name=value."
            )
        if name in _OURS:
            raise SetupError(f"TABHUB_BROWSER_ARGS may not hold {name}: {_OURS[name]}.", hint=f"Take {name} out of it.")
    return extra


def command_line(
    browser: FoundBrowser,
    *,
    profile: Path,
    extension: Path,
    headless: bool,
    loading: Loading,
    machine: Machine,
    extra: Sequence[str] = (),
) -> list[str]:
    """The whole command: the browser, its switches, and an empty first page."""
    features_off = list(_FEATURES_OFF)
    switches = [f"--user-data-dir={profile}", *_ALWAYS]
    if loading == "pipe":
        switches.append("--enable-unsafe-extension-debugging")
    else:
        switches.append(f"--load-extension={extension}")
    if headless:
        switches += _HEADLESS
    if machine.root:
        # The sandbox cannot be set up by root, and the browser refuses to start.
        switches.append("--no-sandbox")
    if machine.small_shm:
        switches.append("--disable-dev-shm-usage")
    for switch in extra:
        name, _, value = switch.partition("=")
        # Of a switch given twice only the last counts: lists are joined, or the person's would undo ours.
        if name == "--disable-features":
            features_off += [feature for feature in value.split(",") if feature]
        else:
            switches.append(switch)
    switches.append(f"--disable-features={','.join(features_off)}")
    return [str(browser.path), *switches, "about:blank"]

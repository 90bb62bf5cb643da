"""The command line of a managed browser.

Owns which switches are given and why. Pure: the properties of the machine are passed in, and it starts nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tabhub.errors import SetupError
from tabhub.links.launch.installed_browsers import FoundBrowser

Loading = Literal["switch", "pipe"]
"""How the extension is loaded: `--load-extension`, or over the debugging pipe, which branded browsers require."""

_UNREACHABLE = "http://127.0.0.1:9"
_ALWAYS = (
    # Unlike a port, the pipe cannot be reached by other programs: only this process inherits it. It also ties the
    # browser's life to ours: when our end closes, for whatever reason, the browser exits.
    "--remote-debugging-pipe",
    # no questions to the person before a page can be used
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-search-engine-choice-screen",
    "--hide-crash-restore-bubble",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    # no debugging banner, which changes the size of pages: this browser exists to be controlled
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
    # these two ignore the switches above: sent to a port on which nothing listens
    f"--component-updater=url-source={_UNREACHABLE}/",
    f"--gaia-url={_UNREACHABLE}",
    # background tabs, which agents use, run as fast as the one in front
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
_RESERVED = {
    "--remote-debugging-port": "no debugging port is ever opened",
    "--remote-debugging-address": "no debugging port is ever opened",
    "--remote-debugging-pipe": "the hub uses the pipe itself",
    "--user-data-dir": "the managed browser has its own profile",
    "--load-extension": "the hub loads its own extension",
    "--disable-extensions": "the hub reaches the browser through its extension",
}


def parse_extra(text: str) -> list[str]:
    """The switches of TABHUB_BROWSER_ARGS, split as in a shell, without those that the hub relies on."""
    try:
        extra = shlex.split(text)
    except ValueError as error:
        raise SetupError(f"TABHUB_BROWSER_ARGS cannot be read: {error}.", hint="Check its quotes.") from None
    for switch in extra:
        name = switch.partition("=")[0]
        if not switch.startswith("--") or switch == "--":
            raise SetupError(
                f"TABHUB_BROWSER_ARGS contains {switch!r}, which is not a switch.", hint="Write --name=value."
            )
        if name in _RESERVED:
            raise SetupError(f"TABHUB_BROWSER_ARGS may not contain {name}: {_RESERVED[name]}.", hint=f"Remove {name}.")
    return extra


def command_line(
    browser: FoundBrowser,
    *,
    profile: Path,
    extension: Path,
    headless: bool,
    loading: Loading,
    is_root: bool,
    has_small_shm: bool,
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
    if is_root:
        # The sandbox does not work for root; the browser would refuse to start.
        switches.append("--no-sandbox")
    if has_small_shm:
        switches.append("--disable-dev-shm-usage")
    for switch in extra:
        name, _, value = switch.partition("=")
        # Only the last of two equal switches counts, so the lists are joined.
        if name == "--disable-features":
            features_off += [feature for feature in value.split(",") if feature]
        else:
            switches.append(switch)
    switches.append(f"--disable-features={','.join(features_off)}")
    return [str(browser.path), *switches, "about:blank"]

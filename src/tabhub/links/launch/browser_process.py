"""A browser that the hub starts, restarts and ends, with its own profile and the extension loaded.

Owns the life of that browser. It is tied to the hub by the debugging pipe it inherits: when the hub ends, even by
SIGKILL, the kernel closes the pipe and the browser exits. Tabs are reached through the extension once it has connected.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tabhub.core.backoff import Backoff
from tabhub.errors import PipeClosedError, PipeRefusedError, SetupError
from tabhub.limits import DEFAULTS, MB, Limits
from tabhub.links.launch.browser_log import BrowserLog
from tabhub.links.launch.browser_profile import end_group, free_profile, prepare_profile, profile_lock, remember_loaded
from tabhub.links.launch.browser_switches import Loading, command_line, parse_extra
from tabhub.links.launch.debugging_pipe import DebuggingPipe
from tabhub.links.launch.extension_files import extension_stamp
from tabhub.links.launch.installed_browsers import FoundBrowser

# The browser reads commands from descriptor 3 and answers on 4. A shell moves them there and becomes the browser;
# unlike code between fork and exec, this is safe with threads.
_SHELL = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
_HINTS = (
    (
        "No usable sandbox",
        "This system forbids the browser's sandbox; if you accept that: TABHUB_BROWSER_ARGS=--no-sandbox",
    ),
    ("Missing X server", "There is no display here: start with --headless."),
    ("cannot open display", "There is no display here: start with --headless."),
    ("error while loading shared libraries", "The browser's installation is incomplete: install it again."),
    ("profile appears to be in use", "Another browser uses the profile: end it."),
)


@dataclass(frozen=True, slots=True)
class BrowserExit:
    """The browser ended, or could not be restarted."""

    reason: str
    code: int | None
    restart_in: float | None
    """Seconds until it is started again; None if it is not."""


@dataclass(frozen=True, slots=True)
class _Running:
    """One started browser."""

    process: asyncio.subprocess.Process
    pipe: DebuggingPipe
    logging: asyncio.Task[None]
    since: float


def has_display(env: Mapping[str, str], *, platform: str = sys.platform) -> bool:
    """Whether a window could be shown."""
    return platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


class ManagedBrowser:
    """One browser, restarted with backoff whenever it exits, until `stop`.

    It is not restarted when a person closes its window. `on_exit` is called for every exit that `stop` did not cause.
    """

    def __init__(
        self,
        browser: FoundBrowser,
        *,
        extension_dir: Path,
        profile_dir: Path,
        log_file: Path,
        downloads: Path | None = None,
        headless: bool | None = None,
        loading: Loading | None = None,
        on_exit: Callable[[BrowserExit], None] = lambda _: None,
        limits: Limits = DEFAULTS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._env = dict(os.environ if env is None else env)
        self.browser = browser
        self.headless = not has_display(self._env) if headless is None else headless
        self._profile = profile_dir.absolute()
        self._downloads = None if downloads is None else downloads.absolute()
        self._on_exit = on_exit
        self._limits = limits
        self._log = BrowserLog(log_file, limits.browser_log)
        self._lock = ExitStack()
        self._running: _Running | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._spawned = asyncio.Event()
        self._extension = extension_dir.absolute()
        self._loading: Loading = loading or ("pipe" if browser.branded else "switch")

    @property
    def pid(self) -> int | None:
        """The browser's process, which leads its own process group; None when it does not run."""
        return self._running.process.pid if self._running is not None and self.alive else None

    @property
    def alive(self) -> bool:
        return self._running is not None and self._running.process.returncode is None

    async def wait_spawned(self) -> None:
        """Wait until its process exists: it starts while this one goes on."""
        await self._spawned.wait()

    async def start(self) -> None:
        """Start the browser and wait until it runs and has the extension; otherwise SetupError."""
        if self._supervisor is not None and not self._supervisor.done():
            return
        self._lock.close()
        with ExitStack() as lock:
            lock.enter_context(profile_lock(self._profile))
            await self._launch()
            self._lock = lock.pop_all()
        self._supervisor = asyncio.create_task(self._supervise(), name="managed-browser")

    async def stop(self) -> None:
        """End the browser with all its processes, after a short time to write its profile."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.wait([supervisor])
        await self._end()
        self._lock.close()
        if supervisor is not None and not supervisor.cancelled():
            supervisor.result()

    async def wait(self) -> int | None:
        """Wait until the running browser has exited; its exit code, or None if it does not run."""
        return await self._running.process.wait() if self._running is not None else None

    async def _launch(self) -> _Running:
        stamp = extension_stamp(self._extension)
        await free_profile(self._profile, grace=self._limits.browser_stop)
        try:
            prepare_profile(self._profile, stamp, self._downloads)
        except OSError as error:
            raise SetupError(f"The managed browser's profile cannot be written: {error}.") from error
        command = command_line(
            self.browser,
            profile=self._profile,
            extension=self._extension,
            headless=self.headless,
            loading=self._loading,
            is_root=os.geteuid() == 0,
            has_small_shm=_has_small_shm(),
            extra=parse_extra(self._env.get("TABHUB_BROWSER_ARGS", "")),
        )
        spawning = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _SHELL,
                "tabhub-browser",
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                cwd=self._profile,
                env={name: value for name, value in self._env.items() if not name.startswith("TABHUB_")},
            )
        )
        try:
            process = await asyncio.shield(spawning)
        except OSError as error:
            raise SetupError(f"{self.browser.name} could not be started: {error}.") from error
        except asyncio.CancelledError:
            # uvloop does not close the pipes of a process whose creation is cancelled: create it, then kill it.
            with suppress(OSError):
                await _discard(await spawning)
            raise
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("a process started with pipes has none")
        pipe = DebuggingPipe(process.stdout, process.stdin)
        logging = asyncio.create_task(self._log.copy(process.stderr), name="managed-browser-log")
        running = self._running = _Running(process, pipe, logging, asyncio.get_running_loop().time())
        self._spawned.set()
        try:
            async with asyncio.timeout(self._limits.browser_start):
                await pipe.request("Browser.getVersion")
                if self._loading == "pipe":
                    await pipe.request("Extensions.loadUnpacked", {"path": str(self._extension)})
            remember_loaded(self._profile, stamp)
        except (TimeoutError, PipeClosedError, PipeRefusedError) as error:
            await self._end()
            raise self._start_failed(error, process.returncode) from error
        except BaseException:
            await self._end()
            raise
        return running

    def _start_failed(self, error: Exception, code: int | None) -> SetupError:
        tail = self._log.tail()
        hint = next((hint for text, hint in _HINTS if text in tail), None)
        if isinstance(error, PipeRefusedError):
            what = f"did not load the extension ({error})"
            if "wasn't found" in str(error):
                hint = f"Update {self.browser.name}, or choose another browser with TABHUB_BROWSER."
            else:
                hint = hint or "Start the hub again to reinstall the extension."
        elif isinstance(error, TimeoutError):
            what = f"was not ready after {self._limits.browser_start:g} seconds"
        else:
            what = f"ended while it started (exit code {code})"
        last = f" Its last message: {tail.splitlines()[-1].strip()}" if tail else ""
        return SetupError(
            f"{self.browser.name} ({self.browser.path}) {what}.{last}",
            hint=f"{hint or 'Try another browser with TABHUB_BROWSER.'} Its log: {self._log.path}",
        )

    async def _end(self) -> None:
        """End the browser and everything it started: first by closing the pipe, then by force."""
        running, self._running = self._running, None
        if running is None:
            return
        try:
            running.pipe.close()
            # Not wait_for: in Python 3.11 it swallows a cancellation at the moment when the process has ended.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.browser_stop):
                    await running.process.wait()
        finally:
            await end_group(running.process.pid, grace=self._limits.browser_stop)
            await running.process.wait()
            # All writers are gone, so the log and the pipe end by themselves.
            ending = [running.logging, asyncio.create_task(running.pipe.wait_closed())]
            for stuck in (await asyncio.wait(ending, timeout=self._limits.browser_stop))[1]:
                stuck.cancel()

    async def _supervise(self) -> None:
        """Restart the browser whenever it exits; a long run resets the backoff."""
        limits, loop = self._limits, asyncio.get_running_loop()
        backoff = Backoff(limits.browser_restart_min, limits.browser_restart_max, jitter=lambda: 1.0)
        running = self._running
        while running is not None:
            code: int | None = await running.process.wait()
            if loop.time() - running.since > limits.browser_restart_max:
                backoff.reset()
            await self._end()
            running, reason = None, f"{self.browser.name} {_describe_exit(code or 0)}"
            if code == 0 and not self.headless:
                self._on_exit(BrowserExit(reason, code, None))
                return
            while running is None:
                delay = backoff.next_delay()
                self._on_exit(BrowserExit(reason, code, delay))
                await asyncio.sleep(delay)
                try:
                    running = await self._launch()
                except SetupError as error:
                    reason, code = error.text(), None


async def _discard(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()


def _describe_exit(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _has_small_shm() -> bool:
    """Whether there is too little shared memory for pages, as in many containers (64 MB)."""
    try:
        facts = os.statvfs("/dev/shm")  # noqa: S108 - only examined
    except OSError:
        return False
    return facts.f_blocks * facts.f_frsize < 512 * MB

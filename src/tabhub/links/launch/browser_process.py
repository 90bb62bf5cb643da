"""A browser the hub starts, keeps running and ends: its own profile, the extension loaded.

Owns the life of that one browser. The browser is tied to the hub by the debugging pipe it inherits: when the hub ends,
also by SIGKILL, the kernel closes the pipe and the browser ends itself. Knows nothing of tabs; those are reached
through the extension once it has connected.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import PipeClosedError, PipeRefusedError, SetupError
from tabhub.limits import DEFAULTS, MB, Limits
from tabhub.links.launch.browser_log import BrowserLog
from tabhub.links.launch.browser_profile import ProfileLock, end_group, free_profile, prepare_profile, remember_loaded
from tabhub.links.launch.browser_switches import Loading, Machine, command_line, parse_extra
from tabhub.links.launch.debugging_pipe import DebuggingPipe
from tabhub.links.launch.extension_files import extension_stamp
from tabhub.links.launch.installed_browsers import FoundBrowser

# The browser reads commands from descriptor 3 and answers on 4. A shell that becomes the browser moves them there,
# which is safe with threads, as code run between fork and exec would not be.
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
    """That the browser ended, or could not be started anew, and when it is tried next (None: it is left so)."""

    reason: str
    code: int | None
    restart_in: float | None


@dataclass(frozen=True, slots=True)
class _Running:
    """One started browser."""

    process: asyncio.subprocess.Process
    pipe: DebuggingPipe
    logging: asyncio.Task[None]
    since: float


def has_display(env: Mapping[str, str], *, platform: str = sys.platform) -> bool:
    """Whether a window could be shown."""
    return platform in ("darwin", "win32") or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


class ManagedBrowser:
    """One browser, started anew with a growing pause whenever it dies, until `stop`.

    A window that a person closes is not opened again. `on_exit` is told of every end that `stop` did not cause.
    """

    def __init__(
        self,
        browser: FoundBrowser,
        *,
        extension_dir: Path,
        profile_dir: Path,
        log_file: Path,
        headless: bool | None = None,
        loading: Loading | None = None,
        on_exit: Callable[[BrowserExit], None] | None = None,
        limits: Limits = DEFAULTS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._env = dict(os.environ if env is None else env)
        self.browser = browser
        self.headless = not has_display(self._env) if headless is None else headless
        self.version: str | None = None
        self._profile = profile_dir.absolute()
        self._on_exit = on_exit
        self._limits = limits
        self._log = BrowserLog(log_file, limits.browser_log)
        self._lock = ProfileLock(self._profile)
        self._running: _Running | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._extension = extension_dir.absolute()
        self._loading: Loading = loading or ("pipe" if browser.branded else "switch")

    @property
    def pid(self) -> int | None:
        """The browser's process, which leads a process group of its own; None when it does not run."""
        return self._running.process.pid if self._running is not None and self.alive else None

    @property
    def alive(self) -> bool:
        """Whether the browser runs."""
        return self._running is not None and self._running.process.returncode is None

    async def start(self) -> None:
        """Start the browser and return when it runs and has the extension; SetupError says why it could not."""
        if self._supervisor is not None and not self._supervisor.done():
            return
        if sys.platform == "win32":
            raise SetupError("A managed browser is not supported on Windows.", hint="Start the hub with --no-launch.")
        self._lock.take()
        try:
            await self._launch()
        except BaseException:
            self._lock.release()
            raise
        self._supervisor = asyncio.create_task(self._supervise(), name="managed-browser")

    async def stop(self) -> None:
        """End the browser with all its processes. It may write its profile first, but not take long."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.wait([supervisor])
        await self._end()
        self._lock.release()
        if supervisor is not None and not supervisor.cancelled():
            supervisor.result()

    async def wait(self) -> int | None:
        """Wait until the browser that runs now has ended; its exit code, or None when none runs."""
        return await self._running.process.wait() if self._running is not None else None

    async def _launch(self) -> _Running:
        stamp = extension_stamp(self._extension)
        await free_profile(self._profile, grace=self._limits.browser_stop)
        try:
            prepare_profile(self._profile, stamp)
        except OSError as error:
            raise SetupError(f"The managed browser's profile cannot be written: {error}.") from error
        command = command_line(
            self.browser,
            profile=self._profile,
            extension=self._extension,
            headless=self.headless,
            loading=self._loading,
            machine=Machine(root=os.geteuid() == 0, small_shm=_small_shm()),
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
        try:
            async with asyncio.timeout(self._limits.browser_start):
                await self._greet(pipe)
            remember_loaded(self._profile, stamp)
        except (TimeoutError, PipeClosedError, PipeRefusedError) as error:
            await self._end()
            raise self._start_failed(error, process.returncode) from error
        except BaseException:
            await self._end()
            raise
        return running

    async def _greet(self, pipe: DebuggingPipe) -> None:
        """The browser runs when it answers; a branded one is then given the extension."""
        self.version = (await pipe.request("Browser.getVersion")).get("product")
        if self._loading == "pipe":
            await pipe.request("Extensions.loadUnpacked", {"path": str(self._extension)})

    def _start_failed(self, error: Exception, code: int | None) -> SetupError:
        said = self._log.tail()
        hint = next((hint for text, hint in _HINTS if text in said), None)
        if isinstance(error, PipeRefusedError):
            what = f"did not load the extension ({error})"
            if "wasn't found" in str(error):
                hint = f"Update {self.browser.name}, or choose another browser with TABHUB_BROWSER."
            else:
                hint = hint or "Start the hub again to install the extension anew."
        elif isinstance(error, TimeoutError):
            what = f"was not ready after {self._limits.browser_start:g} seconds"
        else:
            what = f"ended while it started (exit code {code})"
        last = f" It said: {said.splitlines()[-1].strip()}" if said else ""
        return SetupError(
            f"{self.browser.name} ({self.browser.path}) {what}.{last}",
            hint=f"{hint or 'Try another browser with TABHUB_BROWSER.'} Its log: {self._log.path}",
        )

    async def _end(self) -> None:
        """End the browser and everything it started: by the closed pipe, and after a while by force."""
        running, self._running = self._running, None
        if running is None:
            return
        try:
            running.pipe.close()
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes when the process has just ended.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.browser_stop):
                    await running.process.wait()
        finally:
            await end_group(running.process.pid, grace=self._limits.browser_stop)
            await running.process.wait()
            # All writers are gone, so both readers end by themselves.
            readers = [running.logging, running.pipe.reading]
            for stuck in (await asyncio.wait(readers, timeout=self._limits.browser_stop))[1]:
                stuck.cancel()

    async def _supervise(self) -> None:
        """Start the browser anew when it dies. The pause doubles, and is short again after a good run."""
        loop = asyncio.get_running_loop()
        pause = self._limits.browser_restart_min
        running = self._running
        while running is not None:
            code = await running.process.wait()
            if loop.time() - running.since > self._limits.browser_restart_max:
                pause = self._limits.browser_restart_min
            await self._end()
            closed = code == 0 and not self.headless
            self._tell(f"{self.browser.name} {_ended(code)}", code, None if closed else pause)
            running = None
            while running is None and not closed:
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._limits.browser_restart_max)
                try:
                    running = await self._launch()
                except SetupError as error:
                    self._tell(error.text(), None, pause)

    def _tell(self, reason: str, code: int | None, restart_in: float | None) -> None:
        if self._on_exit is not None:
            self._on_exit(BrowserExit(reason, code, restart_in))


async def _discard(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()


def _ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _small_shm() -> bool:
    """Containers often get 64 MB of shared memory, with which pages crash."""
    try:
        facts = os.statvfs("/dev/shm")  # noqa: S108 - looked at, not written
    except OSError:
        return False
    return facts.f_blocks * facts.f_frsize < 512 * MB

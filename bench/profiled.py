"""Run the hub under a profiler: `python -m bench.profiled MODE OUT start …` runs `tabhub start …`.

SIGUSR1 starts profiling, SIGUSR2 stops it and writes the report, so start-up is excluded. MODE `calls` counts every
Python call (cProfile: exact counts, but the cost of small functions is exaggerated); MODE `sample` records the stack on
each tick of the kernel's CPU timer (true shares, by line); MODE `count` counts instructions and calls, in total and by
function, which do not depend on what else the machine does.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

TOP = 40


class Profiler(Protocol):
    """A profiler that is started and stopped once."""

    def begin(self) -> None: ...

    def end(self) -> str:
        """Stop and return the report."""
        ...


class Calls:
    """cProfile."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def begin(self) -> None:
        self._profile.enable()

    def end(self) -> str:
        """The functions with the most own time."""
        self._profile.disable()
        text = io.StringIO()
        pstats.Stats(self._profile, stream=text).sort_stats("tottime").print_stats(TOP)
        return text.getvalue()


class Samples:
    """A timer of CPU time that records where the main thread is."""

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()
        self._functions: Counter[str] = Counter()
        self._taken = 0

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)

    def _look(self, _signal: int, frame: FrameType | None) -> None:
        self._taken += 1
        if frame is not None:
            self._lines[f"{_place(frame)}:{frame.f_lineno} {frame.f_code.co_name}"] += 1
        seen = set()
        while frame is not None:
            seen.add(f"{_place(frame)} {frame.f_code.co_qualname}")
            frame = frame.f_back
        self._functions.update(seen)

    def end(self) -> str:
        """The hottest lines by own time, then the functions by total time with what they call."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        parts = [f"{self._taken} samples"]
        for title, counts in (("own time, by line", self._lines), ("with callees, by function", self._functions)):
            parts.append(f"\n{title}")
            parts += [f"{count / max(self._taken, 1):6.1%}  {place}" for place, count in counts.most_common(TOP)]
        return "\n".join(parts) + "\n"


class Counts:
    """Counts bytecode instructions, calls of Python functions and calls of C functions.

    The report has the three numbers of each function, and its place, on a line.
    """

    def __init__(self) -> None:
        self._instructions: Counter[CodeType] = Counter()
        self._calls: Counter[CodeType] = Counter()
        self._c_calls: Counter[CodeType] = Counter()

    def begin(self) -> None:
        sys.settrace(self._trace)
        sys.setprofile(self._profile)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "call":
            self._calls[frame.f_code] += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            self._instructions[frame.f_code] += 1
        return self._trace

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "c_call":
            self._c_calls[frame.f_code] += 1

    def end(self) -> str:
        sys.settrace(None)
        sys.setprofile(None)
        codes = {*self._instructions, *self._calls, *self._c_calls}
        return "\n".join(
            f"{self._instructions[code]} {self._calls[code]} {self._c_calls[code]} {_name(code)}" for code in codes
        )


def _place(frame: FrameType) -> str:
    return _file(frame.f_code)


def _name(code: CodeType) -> str:
    return f"{_file(code)} {code.co_qualname}"


def _file(code: CodeType) -> str:
    return "/".join(code.co_filename.split("/")[-3:])


def main() -> None:
    """Run the hub."""
    mode, out = sys.argv[1], Path(sys.argv[2])
    profilers: dict[str, Callable[[], Profiler]] = {"sample": Samples, "count": Counts, "calls": Calls}
    profiler = profilers[mode]()

    def finish(_signal: int, _frame: FrameType | None) -> None:
        half = out.with_suffix(".half")
        half.write_text(profiler.end())
        half.rename(out)  # written at once, so that a reader never sees a part

    signal.signal(signal.SIGUSR1, lambda _signal, _frame: profiler.begin())
    signal.signal(signal.SIGUSR2, finish)
    sys.argv = ["tabhub", *sys.argv[3:]]
    runpy.run_module("tabhub", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

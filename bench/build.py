"""Compile the C programs of the benchmarks. Owns `bench/build/`, not what the programs do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE / "build"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra")


def program(name: str) -> Path:
    """The path of a compiled program; it is rebuilt when its sources are newer."""
    source, target = HERE / f"{name}.c", OUT / name
    newest = max(path.stat().st_mtime for path in (source, *HERE.glob("*.h")))
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("error: no C compiler found\nhint: install one (Debian: apt install gcc libc6-dev)")
    OUT.mkdir(exist_ok=True)
    subprocess.run([compiler, *FLAGS, "-o", str(target), str(source)], check=True)
    return target

"""`tabhub doctor`: check every part of the path from agent to tab, and name the broken one.

Owns the command and its report. Each check is a function of `tabhub.cli.doctor.checks` that says what it found.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tabhub.cli.command import Command, json_option
from tabhub.cli.doctor.checks import Finding, examine
from tabhub.cli.terminal import paint, safe

if TYPE_CHECKING:
    from argparse import Namespace

_STYLE = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(args: Namespace) -> int:
    findings: list[Finding] = []
    for finding in examine():
        findings.append(finding)
        if not args.json:
            _show(finding)
    broken = next((finding for finding in findings if finding.level == "fail"), None)
    if args.json:
        report = {
            "ok": broken is None,
            "broken": broken.name if broken else None,
            "checks": [finding.facts() for finding in findings],
        }
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return 1 if broken else 0
    print()
    if broken is not None:
        print(f"{paint('Broken:', 'red')} {broken.name}. {safe(broken.message)}")
    elif any(finding.level == "warn" for finding in findings):
        print("Nothing is broken; see the warnings above.")
    else:
        print("Everything works, from here to the tabs.")
    return 1 if broken else 0


def _show(finding: Finding) -> None:
    label = paint(finding.level.ljust(4), _STYLE[finding.level])
    print(f"{label}  {finding.name.ljust(9)}  {safe(finding.message)}")
    if finding.remedy and finding.level != "ok":
        print(f"{' ' * 17}{paint('->', 'cyan')} {safe(finding.remedy)}", flush=True)


COMMAND = Command(
    "Diagnose the setup from agent to browser tab and suggest fixes",
    doctor,
    arguments=json_option,
    details="The checks go from this machine over the hub and the extension to the tabs; the first that fails is\n"
    "the broken part. The exit code is 1 when something fails.",
    examples=(("tabhub doctor", ""), ("tabhub doctor --json | jq .broken", "for a script")),
)

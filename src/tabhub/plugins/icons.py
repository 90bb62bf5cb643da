"""Icons of plugins: SVG that contains only drawing elements.

Owns the decision whether an SVG may be shown in the panel. An icon that runs, fetches or embeds anything is rejected,
not sanitized.
"""

from __future__ import annotations

import re
from xml.parsers import expat

_MAX_LENGTH = 64 * 1024
_DRAWING = (
    "svg g defs path rect circle ellipse line polyline polygon lineargradient radialgradient stop clippath mask "
    "symbol use title desc pattern filter feblend fecolormatrix fecomposite feflood fegaussianblur femerge "
    "femergenode feoffset text tspan style metadata"
)
_ELEMENTS = frozenset(_DRAWING.split())
_REFERS_OUTSIDE = re.compile(r"url\(\s*(?!['\"]?#)|javascript:|vbscript:|data:|expression\(|@import|[a-z]+://", re.I)


class _Stop(Exception):
    """Stops the parser: entities could expand without bound."""


def find_problem(svg: str) -> str | None:
    """Why an SVG icon is not safe to show, or None."""
    if len(svg) > _MAX_LENGTH:
        return f"it is larger than {_MAX_LENGTH} characters"
    names: list[str] = []
    problems: list[str] = []

    def start_element(name: str, attributes: dict[str, str]) -> None:
        bare = name.lower().removeprefix("svg:")
        if not names and bare != "svg":
            problems.append(f"its root is <{name[:40]}>, not <svg>")
        names.append(bare)
        if bare not in _ELEMENTS:
            problems.append(f"it contains <{name[:40]}>")
        for key, value in attributes.items():
            if key.lower().startswith("on"):
                problems.append(f"it contains the handler {key[:40]}")
            elif _refers_outside(key.lower(), value):
                problems.append(f"{key[:40]} refers to something outside")

    def character_data(data: str) -> None:
        if _REFERS_OUTSIDE.search(data):
            problems.append("its text refers to something outside")

    def declaration(*_: object) -> None:
        problems.append("it contains a document type, an entity or a processing instruction")
        raise _Stop

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start_element
    parser.CharacterDataHandler = character_data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ProcessingInstructionHandler = declaration
    try:
        parser.Parse(svg.encode("utf-8", "replace"), True)
    except _Stop:
        return problems[0]
    except expat.ExpatError as error:
        return f"it is not well-formed: {error}"
    return problems[0] if problems else None


def _refers_outside(key: str, value: str) -> bool:
    if key in ("href", "xlink:href"):
        return not value.strip().startswith("#")
    return not key.startswith("xmlns") and _REFERS_OUTSIDE.search(value) is not None

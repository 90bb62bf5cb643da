"""Icons of plugins: SVG that only draws.

Owns the decision whether an SVG may be shown in the panel. An icon that runs, fetches or embeds anything is rejected,
not sanitized.
"""

from __future__ import annotations

import re
from xml.parsers import expat

_LARGEST = 64 * 1024
_DRAWING = (
    "svg g defs path rect circle ellipse line polyline polygon lineargradient radialgradient stop clippath mask "
    "symbol use title desc pattern filter feblend fecolormatrix fecomposite feflood fegaussianblur femerge "
    "femergenode feoffset text tspan style metadata"
)
_ELEMENTS = frozenset(_DRAWING.split())
_LOCAL_ONLY = frozenset({"href", "xlink:href"})
_REACHES_OUT = re.compile(r"url\(\s*(?!['\"]?#)|javascript:|vbscript:|data:|expression\(|@import|[a-z]+://", re.I)
_NAMESPACES = ("xmlns",)


class _Stop(Exception):
    """Stops the parser: entities could expand without bound."""


def trouble(svg: str) -> str | None:
    """Why an SVG icon is not safe to show, or None."""
    if len(svg) > _LARGEST:
        return f"it is larger than {_LARGEST} characters"
    found: list[str] = []
    depth = 0

    def opened(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        bare = name.lower().removeprefix("svg:")
        if depth == 0 and bare != "svg":
            found.append(f"its root is <{name[:40]}>, not <svg>")
        depth += 1
        if bare not in _ELEMENTS:
            found.append(f"it holds <{name[:40]}>")
        for key, value in attributes.items():
            word = key.lower()
            if word.startswith("on"):
                found.append(f"it holds the handler {key[:40]}")
            elif _leads_out(word, value):
                found.append(f"{key[:40]} leads out of it")

    def closed(_name: str) -> None:
        nonlocal depth
        depth -= 1

    def text(data: str) -> None:
        if _REACHES_OUT.search(data):
            found.append("its text leads out of it")

    def declared(*_: object) -> None:
        found.append("it declares a document type, an entity or an instruction")
        raise _Stop

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = declared
    parser.EntityDeclHandler = declared
    parser.ProcessingInstructionHandler = declared
    try:
        parser.Parse(svg.encode("utf-8", "replace"), True)
    except _Stop:
        return found[0]
    except expat.ExpatError as error:
        return f"it is not well-formed: {error}"
    return found[0] if found else None


def _leads_out(word: str, value: str) -> bool:
    if word in _LOCAL_ONLY:
        return not value.strip().startswith("#")
    return not word.startswith(_NAMESPACES) and _REACHES_OUT.search(value) is not None

"""Icons contain only drawing elements."""

from __future__ import annotations

import pytest

from tabhub.plugins.icons import find_problem

_HEAD = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"'


@pytest.mark.parametrize(
    "svg",
    [
        f'<svg {_HEAD}><path d="M0 0h8v8z" fill="red"/></svg>',
        f'<svg {_HEAD}><defs><linearGradient id="@a/b"><stop offset="1"/></linearGradient></defs>'
        '<rect width="8" height="8" fill="url(#@a/b)"/></svg>',
        f'<svg {_HEAD} xmlns:xlink="http://www.w3.org/1999/xlink"><g id="a"/><use xlink:href="#a"/></svg>',
    ],
)
def test_plain_svg_is_accepted(svg: str) -> None:
    assert find_problem(svg) is None


@pytest.mark.parametrize(
    "svg",
    [
        f"<svg {_HEAD}><script>alert(1)</script></svg>",
        f'<svg {_HEAD} onload="alert(1)"/>',
        f'<svg {_HEAD}><a href="javascript:alert(1)"><path d="M0 0"/></a></svg>',
        f'<svg {_HEAD}><image href="https://evil.example/x.png"/></svg>',
        f'<svg {_HEAD}><use href="https://evil.example/x.svg#a"/></svg>',
        f"<svg {_HEAD}><foreignObject><p/></foreignObject></svg>",
        f'<svg {_HEAD}><rect fill="url(https://evil.example/x)"/></svg>',
        f'<svg {_HEAD}><style>@import "https://evil.example/x.css";</style></svg>',
        f"<svg {_HEAD}><style>rect {{ fill: url(//evil.example/x) }}</style></svg>",
        f'<svg {_HEAD}><animate attributeName="href" to="javascript:alert(1)"/></svg>',
        '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><svg>&b;</svg>',
        '<?xml-stylesheet href="x.css"?><svg/>',
        "<html/>",
        "<svg",
        "not svg at all",
        "<svg>" + "x" * 70_000 + "</svg>",
    ],
)
def test_svg_that_runs_fetches_or_embeds_is_rejected(svg: str) -> None:
    assert find_problem(svg) is not None

"""Five pages as large as real ones, generated deterministically: a mailbox, an article, a shop, a table of figures and
a settings form. Each has 1,000 to 2,500 elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_LEXICON = (
    "harbour lantern meadow copper winter signal paper garden river window basket market engine letter summer shadow "
    "timber ribbon castle pepper silver orchard thunder velvet button compass feather island journey kitchen"
)
_WORDS = _LEXICON.split()


def words(seed: int, count: int) -> str:
    """Pseudo-sentences, the same in each run."""
    return " ".join(_WORDS[(seed * 7 + at * 13 + at * at) % len(_WORDS)] for at in range(count)).capitalize()


def page(title: str, body: Iterable[str]) -> str:
    style = (
        "body{font:14px sans-serif}nav a{margin:4px}.card{display:inline-block;width:220px}.row{display:flex}"
        ".row>*{margin:2px}td{padding:2px}.muted{color:#666}"
    )
    return (
        f"<!doctype html><html lang=en><title>{title}</title><style>{style}</style><body>{''.join(body)}</body></html>"
    )


def _navigation(count: int) -> str:
    links = "".join(f"<li><a href='/section/{n}'><span>{words(n, 2)}</span></a></li>" for n in range(count))
    return f"<header><h1>Bench</h1><nav aria-label=Main><ul>{links}</ul></nav></header>"


def mailbox() -> str:
    """A list of messages, each with a checkbox, a star and a link."""
    rows = (
        f"<div class=row role=row><div role=cell><input type=checkbox aria-label='Select {words(n, 3)}'></div>"
        f"<div role=cell><button aria-label='Star' aria-pressed={'true' if n % 5 == 0 else 'false'}>"
        f"<svg width=12 height=12><path d='M0 0h12v12z'/></svg></button></div>"
        f"<div role=cell><span class=name>{words(n, 2)}</span></div>"
        f"<div role=cell><a href='/mail/{n}'><b>{words(n + 3, 5)}</b> "
        f"<span class=muted>{words(n + 9, 9)}</span></a></div>"
        f"<div role=cell><span>Nov {n % 28 + 1}</span></div></div>"
        for n in range(110)
    )
    return page("Mailbox", (_navigation(12), "<main><div role=table aria-label=Messages>", *rows, "</div></main>"))


def article() -> str:
    """A long text with headings, links, lists, notes and pictures."""
    sections, note = [], "<sup><a href=#n>1</a></sup>"
    for n in range(30):
        links = " ".join(
            f"{words(n * 5 + at, 12)} <a href='/wiki/{n}-{at}'>{words(n + at, 2)}</a>{note * (at % 2)}."
            for at in range(7)
        )
        points = "".join(f"<li>{words(n + at, 8)} <em>{words(at, 2)}</em></li>" for at in range(6))
        sections.append(
            f"<section><h2 id=s{n}><span>{words(n, 3)}</span> <a href='#edit{n}'>edit</a></h2><p>{links}</p>"
            f"<ul>{points}</ul><figure><img alt='{words(n, 4)}' width=120 height=80 src='data:,'>"
            f"<figcaption>{words(n, 7)}</figcaption></figure></section>"
        )
    return page("Article", (_navigation(20), "<main><article>", *sections, "</article></main><footer>End</footer>"))


def shop() -> str:
    """Product cards, each with a picture, a link, a price, a choice and two buttons."""
    cards = (
        f"<div class=card><div class=frame><a href='/item/{n}'>"
        f"<img alt='{words(n, 3)}' width=90 height=60 src='data:,'></a></div>"
        f"<div><a href='/item/{n}'><h3>{words(n, 3)}</h3></a><div><span>{n % 5 + 1}.{n % 10}</span>"
        f"<span class=muted>({n * 3} reviews)</span></div><div><span>$</span><span>{n * 7 % 90 + 9}.99</span></div>"
        f"<select aria-label='Size of {words(n, 2)}'><option>S<option selected>M<option>L</select>"
        f"<button>Add to cart</button><button aria-label='Save {words(n, 2)}'><svg width=9 height=9></svg></button>"
        "</div></div>"
        for n in range(70)
    )
    filters = "".join(
        f"<label><input type=checkbox {'checked' * (n % 2)}> {words(n, 2)}</label><br>" for n in range(25)
    )
    return page("Shop", (_navigation(15), f"<aside aria-label=Filters>{filters}</aside><main>", *cards, "</main>"))


def figures() -> str:
    """A table with sortable headers and a menu in each row."""
    heads = "".join(
        f"<th scope=col><button>{words(n, 1)} <span aria-hidden=true>▲</span></button></th>" for n in range(8)
    )
    rows = (
        "<tr>"
        + f"<th scope=row><a href='/row/{n}'>{words(n, 2)}</a></th>"
        + "".join(f"<td><span>{n * at % 977}</span></td>" for at in range(1, 7))
        + f"<td><button aria-haspopup=menu aria-label='More for row {n}'>⋯</button></td></tr>"
        for n in range(130)
    )
    return page(
        "Figures",
        (_navigation(8), f"<main><table><thead><tr>{heads}</tr></thead><tbody>", *rows, "</tbody></table></main>"),
    )


def settings() -> str:
    """Fields of every kind, with labels and help."""
    fields = []
    for n in range(120):
        kind = ("text", "email", "checkbox", "radio", "number", "select")[n % 6]
        if kind == "select":
            control = f"<select id=f{n}>{''.join(f'<option>{words(n + at, 1)}' for at in range(6))}</select>"
        else:
            value, must = (n if kind == "number" else ""), " required" * (n % 4 == 0)
            control = f"<input id=f{n} type={kind} name=g{n // 6}{must} value='{value}'>"
        fields.append(
            f"<div class=row><div><label for=f{n}>{words(n, 3)}</label></div><div>{control}</div>"
            f"<div class=muted id=h{n}><small>{words(n + 2, 8)}</small></div></div>"
        )
        if n % 12 == 11:
            fields.append(
                f"</fieldset><button type=button>Save {words(n, 2)}</button><fieldset><legend>{words(n, 2)}</legend>"
            )
    return page(
        "Settings",
        (_navigation(10), "<main><form><fieldset><legend>First</legend>", *fields, "</fieldset></form></main>"),
    )


PAGES: dict[str, Callable[[], str]] = {
    "mailbox": mailbox,
    "article": article,
    "shop": shop,
    "figures": figures,
    "settings": settings,
}

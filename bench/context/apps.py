"""Generated pages like those of apps, with at least 2,000 elements each: a mailbox, a calendar, a board and a table."""

from __future__ import annotations

from collections.abc import Callable

from bench.sites import page, words

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _menu(count: int) -> str:
    links = "".join(f"<li><a href='/go/{n}'>{words(n, 2)} {n}</a></li>" for n in range(count))
    search = "<form role=search><input type=search aria-label=Search><button>Find</button></form>"
    return f"<header><nav aria-label=Menu><ul>{links}</ul></nav>{search}</header>"


def mail() -> str:
    """Messages with a checkbox, a star, a link and buttons."""
    rows = "".join(
        f"<li class=row><input type=checkbox aria-label='Select message {n}'><button aria-label='Star message {n}'>"
        f"<svg width=12 height=12><path d='M0 0h12v12z'/></svg></button><span>{words(n, 2)}</span>"
        f"<a href='/mail/{n}'><b>{words(n + 3, 5)} {n}</b></a><span class=muted>{words(n + 9, 14)}</span>"
        f"<time>Nov {n % 28 + 1}</time><button title='Delete message {n}'>&times;</button></li>"
        for n in range(200)
    )
    return page("Mail", (_menu(20), f"<main><h1>Inbox</h1><ul aria-label=Messages>{rows}</ul></main>"))


def calendar() -> str:
    """Twelve months of days, some with entries."""
    months = []
    for month in range(12):
        days = "".join(
            f"<div role=gridcell><button aria-label='Day {day + 1} of month {month + 1}'>{day + 1}</button>"
            + "".join(
                f"<a href='/event/{month}-{day}-{n}'><span>{9 + n}:00</span> <span>{words(month * 31 + day + n, 3)} "
                f"{month}.{day}.{n}</span></a>"
                for n in range((month + day) % 4)
            )
            + "</div>"
            for day in range(28)
        )
        heads = "".join(f"<div role=columnheader>{day}</div>" for day in _DAYS)
        months.append(f"<section><h2>Month {month + 1}</h2><div role=grid>{heads}{days}</div></section>")
    return page("Calendar", (_menu(10), "<main><h1>Year</h1>", *months, "</main>"))


def board() -> str:
    """Columns of cards with labels, a link, a menu and a field."""
    columns = []
    for column in range(8):
        cards = "".join(
            f"<article class=card><h3><a href='/card/{column}-{n}'>{words(column * 40 + n, 4)} {column}.{n}</a></h3>"
            f"<p>{words(n + column, 18)}</p><span class=muted>{words(n, 1)}</span><span class=muted>{words(n + 5, 1)}"
            f"</span><button aria-label='Menu of card {column}.{n}'>&hellip;</button></article>"
            for n in range(40)
        )
        add = f"<input placeholder='Add a card to column {column}'>"
        columns.append(f"<section><h2>{words(column, 2)} {column}</h2>{cards}{add}</section>")
    return page("Board", (_menu(10), "<main><h1>Board</h1>", *columns, "</main>"))


def table() -> str:
    """Rows of figures with a link, a choice and buttons."""
    rows = "".join(
        f"<tr><td>{n}</td><td><a href='/order/{n}'>{words(n, 3)} {n}</a></td><td>{n * 37 % 1000}.00</td>"
        f"<td><select aria-label='State of order {n}'><option>open</option><option>sent</option></select></td>"
        f"<td><button aria-label='Edit order {n}'>Edit</button><button aria-label='Remove order {n}'>Remove</button>"
        "</td></tr>"
        for n in range(300)
    )
    head = "<tr><th>Number</th><th>Order</th><th>Sum</th><th>State</th><th>Actions</th></tr>"
    body = f"<main><h1>Orders</h1><table><caption>All orders</caption>{head}{rows}</table></main>"
    return page("Orders", (_menu(15), body))


APPS: dict[str, Callable[[], str]] = {"mail": mail, "calendar": calendar, "board": board, "table": table}

"""The results as tables: both products in total, and each task that was not solved, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench import report
from bench.miniwob.episodes import PRODUCT_NAMES, SEEDS, SOLVED, Episode
from bench.miniwob.policies.registry import LEFT_OUT

_HEAD = ("", "solved", "calls", "tokens", "of these answers", "characters", "s inside calls", "mean ms a call")
_TABHUB, _PLAYWRIGHT = PRODUCT_NAMES.values()


@dataclass(frozen=True, slots=True)
class Total:
    """All episodes of one product."""

    episodes: int
    solved: int
    calls: int
    tokens: int
    answers: int
    characters: int
    seconds: float

    @classmethod
    def of(cls, episodes: Sequence[Episode]) -> Total:
        return cls(
            len(episodes),
            sum(one.solved for one in episodes),
            sum(one.calls for one in episodes),
            sum(one.tokens for one in episodes),
            sum(one.answer_tokens for one in episodes),
            sum(one.characters for one in episodes),
            sum(one.seconds for one in episodes),
        )


def paired(episodes: Iterable[Episode], seeds: Sequence[int] = SEEDS) -> dict[str, list[Episode]]:
    """The episodes by product, of those tasks and seeds that every product has done."""
    found: dict[str, dict[tuple[str, int], Episode]] = {name: {} for name in PRODUCT_NAMES.values()}
    for one in episodes:
        if one.seed in seeds:
            found[one.product][one.task, one.seed] = one
    shared = set.intersection(*(set(by_key) for by_key in found.values()))
    return {name: [by_key[key] for key in sorted(shared)] for name, by_key in found.items()}


def render(episodes: Iterable[Episode], pages: int, machine: str, seeds: Sequence[int] = SEEDS) -> str:
    by_product = paired(episodes, seeds)
    totals = {name: Total.of(own) for name, own in by_product.items()}
    tasks = {one.task for one in by_product[_TABHUB]}
    ours, theirs = totals[_TABHUB], totals[_PLAYWRIGHT]
    rows = [_row(name, total) for name, total in totals.items()]
    rows.append(_ratios(ours, theirs))
    wanted = (
        report.verdict("episodes solved, to Playwright MCP's", _part(ours.solved, theirs.solved), 1, at_least=True),
        report.verdict("tokens, to Playwright MCP's", _part(ours.tokens, theirs.tokens), 1 / 3, at_least=False),
        report.verdict(
            "time inside calls, to Playwright MCP's", _part(ours.seconds, theirs.seconds), 1 / 5, at_least=False
        ),
    )
    note = (
        f"{len(tasks)} of {pages} pages, seeds {', '.join(map(str, seeds))}; solved is a reward of at least {SOLVED:g} "
        f"of 1; {machine}."
    )
    return "\n\n".join((note, report.table(_HEAD, rows), "\n".join(wanted), _failures(by_product), _left_out(LEFT_OUT)))


def _row(name: str, total: Total) -> tuple[str, ...]:
    return (
        name,
        f"{total.solved} of {total.episodes}",
        f"{total.calls:,}",
        f"{total.tokens:,}",
        f"{total.answers:,}",
        f"{total.characters:,}",
        f"{total.seconds:,.1f}",
        f"{1000 * _part(total.seconds, total.calls):,.0f}",
    )


def _ratios(ours: Total, theirs: Total) -> tuple[str, ...]:
    pairs = (
        (ours.solved, theirs.solved),
        (ours.calls, theirs.calls),
        (ours.tokens, theirs.tokens),
        (ours.answers, theirs.answers),
        (ours.characters, theirs.characters),
        (ours.seconds, theirs.seconds),
        (_part(ours.seconds, ours.calls), _part(theirs.seconds, theirs.calls)),
    )
    return ("Tabhub to Playwright MCP", *(f"{_part(one, other):.2f}" for one, other in pairs))


def _part(one: float, other: float) -> float:
    return one / other if other else 0.0


def _failures(by_product: Mapping[str, Sequence[Episode]]) -> str:
    rows = [
        (one.task, name, str(one.seed), "none" if one.reward is None else f"{one.reward:.2f}", _why(one))
        for name, episodes in by_product.items()
        for one in episodes
        if not one.solved
    ]
    if not rows:
        return "Every episode was solved."
    return report.table(("not solved", "product", "seed", "reward", "why"), sorted(rows))


def _why(one: Episode) -> str:
    text = one.error.partition("\n")[0] or ("the page did not end the episode" if one.reward is None else "")
    return text.replace("|", "/")[:160] or "-"


def _left_out(pages: Mapping[str, str]) -> str:
    return "\n".join(["Left out:", "", *(f"- {name}: {why}" for name, why in sorted(pages.items()))])

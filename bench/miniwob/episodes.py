"""Running episodes: every task with every seed on every product, in turn, and their results in a file.

Owns what is done already (a run continues where it was stopped), not what the results mean.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.build import OUT
from bench.miniwob.policies import POLICIES
from bench.miniwob.products.base import Product
from bench.miniwob.products.mcp import ToolFailed
from bench.miniwob.servers import products
from bench.miniwob.site import Rewards, address, site

RESULTS = OUT / "miniwob.jsonl"
SEEDS = (101, 102, 103)
"""The published ones. The policies were written with others."""
SOLVED = 0.9
"""The page's reward (-1 to 1, without the share for speed) from which on a task counts as solved."""
_REWARD_WAIT = 1.0
_LONGEST = 120.0
PRODUCT_NAMES = {"tabhub": "Tabhub", "playwright": "Playwright MCP"}


@dataclass(frozen=True, slots=True)
class Episode:
    """One task with one seed on one product."""

    product: str
    task: str
    seed: int
    reward: float | None
    """None if the page gave none."""
    calls: int
    seconds: float
    """Inside calls."""
    tokens: int
    """Of the answers and of what was sent."""
    answer_tokens: int
    characters: int
    error: str = ""
    """Why the policy gave up."""

    @property
    def solved(self) -> bool:
        return self.reward is not None and self.reward >= SOLVED


def load(path: Path = RESULTS) -> list[Episode]:
    """The results so far; of an episode that was run again, the last one."""
    if not path.exists():
        return []
    found = [Episode(**json.loads(line)) for line in path.read_text().splitlines()]
    return list({(one.product, one.task, one.seed): one for one in found}.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run."""

    tasks: Sequence[str]
    seeds: Sequence[int]
    products: Sequence[str]
    results: Path
    show: bool = False
    """Print each call with its answer."""


async def run(plan: Plan) -> None:
    """Run what has no result yet."""
    known = {(one.product, one.task, one.seed) for one in load(plan.results)}
    rewards = Rewards()
    with site(rewards) as origin:
        async with products(list(plan.products)) as running:
            wanted = [
                (task, seed, product)
                for seed in plan.seeds
                for task in plan.tasks
                for product in running
                if (product.name, task, seed) not in known
            ]
            plan.results.parent.mkdir(exist_ok=True)
            with plan.results.open("a") as file:
                for number, (task, seed, product) in enumerate(wanted, 1):
                    episode = await _episode(product, origin, task, seed, rewards, show=plan.show)
                    file.write(json.dumps(asdict(episode)) + "\n")
                    file.flush()
                    print(f"{number}/{len(wanted)} {_line(episode)}", flush=True)


async def _episode(product: Product, origin: str, task: str, seed: int, rewards: Rewards, *, show: bool) -> Episode:
    meter, error = product.begin(log=show), ""
    try:
        async with asyncio.timeout(_LONGEST):
            view = await product.open(address(origin, task, seed))
            await POLICIES[task](product, view)
    except (ToolFailed, LookupError, ValueError, RuntimeError, TimeoutError) as failure:
        error = f"{type(failure).__name__}: {failure}"[:400]
    reward = await asyncio.to_thread(rewards.take, task, seed, _REWARD_WAIT)
    for entry in meter.log or ():
        print(entry, flush=True)
    read, written = tokens(meter.read), tokens(meter.written)
    characters = len(meter.read) + len(meter.written)
    return Episode(
        product.name, task, seed, reward, meter.calls, round(meter.seconds, 4), read + written, read, characters, error
    )


def tokens(text: str) -> int:
    """How many tokens of o200k a text is."""
    import bpe_openai  # type: ignore[import-untyped]

    return len(bpe_openai.get_encoding("o200k_base").encode(text))


def _line(one: Episode) -> str:
    result = "solved" if one.solved else f"NOT solved (reward {one.reward})"
    why = f"  {one.error}" if one.error else ""
    return (
        f"{one.task} {one.seed} {one.product}: {result}, {one.calls} calls, {one.tokens} tokens, "
        f"{1000 * one.seconds:.0f} ms{why}"
    )

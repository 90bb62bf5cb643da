"""The capacity model: the simulation confirms it, and the document repeats its figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scale_sim import LOADS, Load, Model, Policy, simulate, table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("nodes", [2, 5, 25])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_placement_matches_the_model(nodes: int, seed: int) -> None:
    users = 10_000
    seen, model = simulate(users, nodes, seed=seed), Model()
    assert seen.cross == pytest.approx(model.cross(nodes), abs=0.02)
    assert seen.fullest <= model.heaviest(users * 2, nodes)
    assert seen.fullest_after <= model.heaviest(users * 2, max(nodes - 1, 1)) + 0.01
    assert seen.subjects == pytest.approx(2 - 1 / nodes, abs=0.02)


@pytest.mark.parametrize("policy", ["random", "least"])
def test_a_dead_node_affects_only_its_clients_which_reconnect_elsewhere(policy: Policy) -> None:
    nodes = 20
    seen = simulate(20_000, nodes, policy=policy, seed=3)
    assert seen.cut == pytest.approx(1 - (1 - 1 / nodes) ** 2, abs=0.01)
    assert seen.unserved == 0
    assert seen.fullest_after < 1.15


def test_choosing_the_emptier_node_is_more_even_than_chance() -> None:
    even, chance = simulate(20_000, 20, policy="least", seed=4), simulate(20_000, 20, policy="random", seed=4)
    assert even.fullest < 1.01
    assert even.fullest < chance.fullest


@pytest.mark.parametrize("load", LOADS)
def test_a_plan_handles_its_load_with_one_node_missing(load: Load) -> None:
    model = Model()
    plan = model.plan(load)
    clients = load.browsers * (1 + load.agents_per_browser)
    assert clients / (plan.nodes - 1) <= 50_000
    assert model.cpu(load, plan.nodes) / (plan.nodes - 1) <= 0.6
    assert plan.node_cores + plan.storm_cores < 1
    assert plan.nats_cores < 8


def test_the_same_seed_gives_the_same_result() -> None:
    assert simulate(1000, 5, seed=9) == simulate(1000, 5, seed=9)
    assert simulate(1000, 5, seed=9) != simulate(1000, 5, seed=10)


def test_the_document_shows_the_figures_of_the_model() -> None:
    text = (ROOT / "docs" / "scale.md").read_text()
    for line in table():
        assert line in text

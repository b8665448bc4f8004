"""Prices against the published sheets, and what is inferred from another region's."""

from __future__ import annotations

import pytest

from fleetcast.errors import ScenarioError
from fleetcast.profiles import prices
from fleetcast.profiles.read import load_profile


@pytest.mark.parametrize(
    ("instance", "usd"),
    [
        ("g5.xlarge", 1.006),
        ("g5.12xlarge", 5.672),
        ("g6.12xlarge", 4.6016),
        ("g6e.xlarge", 1.861),
        ("g6e.12xlarge", 10.49264),
        ("g7.12xlarge", 7.12832),
        ("g7e.2xlarge", 3.36312),
        ("p5.48xlarge", 55.04),
        ("trn1.2xlarge", 1.34375),
    ],
)
def test_on_demand_in_us_east_1_is_the_sheets(instance: str, usd: float) -> None:
    price = prices.on_demand(instance, "us-east-1")
    assert (price.usd, price.unit, price.date, price.inferred) == (usd, "h", "2026-07-20", False)
    assert "karpenter" in price.source


@pytest.mark.parametrize(
    ("region", "usd"), [("ap-northeast-2", 2.288), ("ap-northeast-1", 2.699), ("eu-central-1", 2.327)]
)
def test_another_regions_price_is_inferred_and_agrees_with_the_listed_one(region: str, usd: float) -> None:
    price = prices.on_demand("g6e.xlarge", region)
    assert price.usd == pytest.approx(usd, abs=0.0006)  # listed to three decimals
    assert price.inferred
    assert "multiplier" in price.source and "us-east-1" in price.source


def test_every_region_but_the_sheets_own_is_inferred() -> None:
    assert prices.on_demand("g5.xlarge", "us-west-2").usd == 1.006
    assert prices.on_demand("g5.xlarge", "us-west-2").inferred


def test_where_no_multiplier_leads_there_is_no_price() -> None:
    with pytest.raises(ScenarioError) as caught:
        prices.on_demand("g6e.xlarge", "eu-west-1")
    assert "g6e.xlarge in eu-west-1" in str(caught.value)
    assert "ap-northeast-2" in str(caught.value) and "sa-east-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("instance", "region", "words"),
    [
        ("g6e.xlarge", "eu-centrl-1", "closest: eu-central-1"),
        ("g6e.xlrge", "us-east-1", "g6e.xlarge"),
        ("ml.g5.xlarge", "us-east-1", 'write the EC2 name "g5.xlarge"'),
        ("p5e.48xlarge", "us-east-1", "no on-demand price is known for p5e.48xlarge"),
    ],
)
def test_unknown_names_are_refused_with_what_to_write(instance: str, region: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        prices.on_demand(instance, region)
    assert words in str(caught.value)


def test_regions_are_sorted_and_hold_those_with_a_price() -> None:
    assert list(prices.regions()) == sorted(prices.regions())
    assert set(prices.multipliers()) < set(prices.regions())
    assert {"eu-west-1", "ap-southeast-1", "sa-east-1"} <= set(prices.regions())
    assert prices.multipliers()["ap-northeast-2"] == 1.2295


def test_private_connectivity() -> None:
    assert prices.endpoint_hour("us-east-1").usd == 0.01
    assert not prices.endpoint_hour("us-east-1").inferred
    assert prices.endpoint_hour("ap-northeast-2").usd == 0.013
    assert prices.endpoint_hour("ap-northeast-2").inferred
    assert prices.endpoint_hour("eu-west-1").inferred
    assert [prices.endpoint_gb(gb).usd for gb in (0, 999_999, 1e6, 4.9e6, 5e6, 9e9)] == [
        0.01, 0.01, 0.006, 0.006, 0.004, 0.004,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("src", "dst", "usd", "inferred"),
    [
        ("us-east-1", "us-west-2", 0.02, False),
        ("eu-west-1", "us-east-1", 0.02, False),
        ("us-east-1", "us-east-2", 0.01, True),
        ("us-east-2", "us-east-1", 0.01, True),
        ("ap-northeast-2", "us-west-2", 0.08, True),
        ("us-west-2", "ap-northeast-2", 0.02, False),
        ("ap-northeast-1", "ap-northeast-2", 0.09, True),
        ("sa-east-1", "us-east-1", 0.138, True),
        ("ap-southeast-2", "us-east-1", 0.02 * 1.3002, True),
        ("ap-northeast-2", "ap-northeast-2", 0.0, False),
    ],
)
def test_transfer_is_priced_by_the_region_it_leaves(src: str, dst: str, usd: float, inferred: bool) -> None:
    price = prices.inter_region_gb(src, dst)
    assert price.usd == pytest.approx(usd, rel=1e-12)
    assert (price.unit, price.inferred) == ("GB", inferred)


def test_transfer_out_of_a_region_without_any_figure_is_refused() -> None:
    with pytest.raises(ScenarioError, match="af-south-1"):
        prices.inter_region_gb("af-south-1", "us-east-1")
    with pytest.raises(ScenarioError, match="closest: us-east-1"):
        prices.inter_region_gb("us-east-1", "us-east1")


@pytest.mark.parametrize(
    ("name", "usd"),
    [
        ("g5-fp8-qwen3-coder-30b", 4.55),
        ("g7-fp8-qwen3-coder-30b", 5.06),
        ("g6-fp8-qwen3-coder-30b", 5.25),
    ],
)
def test_a_million_tokens_at_four_users(name: str, usd: float) -> None:
    profile = load_profile(name).profile
    found = prices.usd_per_million_output_tokens(profile, profile.point[0])
    assert found is not None and round(found, 2) == usd


def test_a_million_tokens_of_g6e_int8() -> None:
    profile = load_profile("g6e-int8").profile
    found = prices.usd_per_million_output_tokens(profile, profile.point[0])
    assert found == pytest.approx(1.861 / 3600 / 6314 * 1e6, rel=1e-12)
    assert found is not None and round(found, 4) == 0.0819
    seoul = prices.usd_per_million_output_tokens(profile, profile.point[0], "ap-northeast-2")
    assert seoul == pytest.approx(found * 1.2295, rel=1e-12)

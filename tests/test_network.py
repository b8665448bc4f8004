"""The way between regions: distances against published ones, handshakes and jitter against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.errors import ScenarioError
from fleetcast.sim.network import (
    NO_NETWORK,
    TLS_ROUND_TRIPS,
    assumptions,
    back,
    bytes_of,
    network_for,
    regions,
    round_trip,
    there,
)

SEOUL, OREGON, VIRGINIA, OHIO = "ap-northeast-2", "us-west-2", "us-east-1", "us-east-2"
TOKYO, FRANKFURT = "ap-northeast-1", "eu-central-1"
REGIONS = st.sampled_from(regions())


def _rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_matrix_holds_21_regions() -> None:
    assert len(regions()) == 21
    assert {SEOUL, OREGON, VIRGINIA, "eu-west-1", "sa-east-1", "me-south-1"} <= set(regions())


@pytest.mark.parametrize(
    ("a", "b", "published"),
    [
        (VIRGINIA, OHIO, 0.013),
        (VIRGINIA, OREGON, 0.068),
        (VIRGINIA, SEOUL, 0.181),
        (OREGON, TOKYO, 0.105),
        (OREGON, FRANKFURT, 0.144),
    ],
)
def test_round_trips_agree_with_a_second_measurement(a: str, b: str, published: float) -> None:
    assert round_trip(a, b) == pytest.approx(published, rel=0.12)


def test_the_measuring_overhead_is_taken_off() -> None:
    # (127.84 + 126.11) / 2 less the diagonal's mean, 6.23 ms, and 1 ms back
    assert round_trip(SEOUL, OREGON) == pytest.approx(0.12174, abs=1e-5)


@given(REGIONS, REGIONS)
def test_distances_are_positive_and_the_same_both_ways(a: str, b: str) -> None:
    assert round_trip(a, b) == round_trip(b, a)
    assert round_trip(a, b) >= round_trip(a, a) > 0


def test_beside_the_fleet_a_round_trip_is_a_millisecond_and_privatelink() -> None:
    assert network_for(SEOUL, SEOUL, privatelink=False).round_trip_s <= 0.001
    with_link = network_for(SEOUL, SEOUL)
    assert with_link.round_trip_s == pytest.approx(0.001 + 2 * 0.0003)
    assert network_for(SEOUL, SEOUL, privatelink_latency_s=0.002).round_trip_s == pytest.approx(0.005)


@pytest.mark.parametrize("tls", sorted(TLS_ROUND_TRIPS))
def test_a_new_connection_pays_its_handshakes_before_the_request(tls: str) -> None:
    handshakes = {"none": 1, "1.2": 3, "1.3": 2}[tls]
    common = {"privatelink": False, "tail": 1.0, "tls": tls}
    warm = network_for(SEOUL, OREGON, new_connection_share=0.0, **common)
    cold = network_for(SEOUL, OREGON, new_connection_share=1.0, **common)
    warm_s = there(warm, 10, _rng()) + back(warm, 10, _rng(2))
    cold_s = there(cold, 10, _rng()) + back(cold, 10, _rng(2))
    np.testing.assert_allclose(cold_s, warm_s * (1 + handshakes))
    np.testing.assert_allclose(warm_s, round_trip(SEOUL, OREGON))


def test_seoul_to_oregon_costs_a_first_token_126_ms_warm_and_378_ms_cold() -> None:
    # As measured: a round trip of 126 ms, TLS 1.3, so three of them for a new connection.
    for share, added in ((0.0, 0.126), (1.0, 0.378)):
        way = network_for(SEOUL, OREGON, privatelink=False, round_trip_s=0.126, tail=1.0, new_connection_share=share)
        np.testing.assert_allclose(there(way, 3, _rng()) + back(way, 3, _rng()), added)


def test_the_share_of_new_connections_is_met() -> None:
    n, share = 200_000, 0.05
    way = network_for(SEOUL, OREGON, tail=1.0, new_connection_share=share)
    new = int((there(way, n, _rng()) > 1.5 * way.one_way_s).sum())
    assert abs(new - n * share) < 4 * np.sqrt(n * share * (1 - share))


@pytest.mark.parametrize("tail", [1.03, 1.06, 1.5])
def test_jitter_has_the_median_and_the_p99_that_were_asked_for(tail: float) -> None:
    way = network_for(VIRGINIA, TOKYO, privatelink=False, tail=tail, new_connection_share=0.0)
    drawn = back(way, 400_000, _rng())
    p50, p99 = np.quantile(drawn, [0.5, 0.99])
    assert p50 == pytest.approx(way.one_way_s, rel=2e-4)
    assert p99 / p50 == pytest.approx(tail, rel=4e-3)
    assert drawn.min() > 0.97 * way.one_way_s


@given(REGIONS, REGIONS, st.floats(1, 2), st.floats(0, 1), st.sampled_from(sorted(TLS_ROUND_TRIPS)))
@settings(max_examples=50)
def test_whatever_the_parameters_the_same_variates_are_drawn(
    client: str, fleet: str, tail: float, share: float, tls: str
) -> None:
    one, other = _rng(7), _rng(7)
    there(network_for(VIRGINIA, VIRGINIA), 50, one)
    way = network_for(client, fleet, tail=tail, new_connection_share=share, tls=tls)
    times = there(way, 50, other)
    assert one.random() == other.random()
    assert (times > 0).all() and times.dtype == np.float64 and times.shape == (50,)
    np.testing.assert_array_equal(times, there(way, 50, _rng(7)))


def test_a_slower_network_is_slower_for_every_request() -> None:
    near, far = network_for(VIRGINIA, OHIO), network_for(VIRGINIA, TOKYO)
    assert (there(near, 1_000, _rng()) < there(far, 1_000, _rng())).all()


def test_no_network_takes_no_time_and_draws_nothing() -> None:
    rng = _rng(3)
    assert not there(NO_NETWORK, 5, rng).any()
    assert not back(NO_NETWORK, 5, rng).any()
    assert rng.random() == _rng(3).random()
    assert assumptions(NO_NETWORK) == []


def test_assumptions_name_every_figure_that_was_not_measured() -> None:
    listed = assumptions(network_for(SEOUL, OREGON))
    values = {text: value for text, value, _ in listed}
    assert values["PrivateLink adds latency one way"] == "0.3 ms"
    assert values["round trip ap-northeast-2 – us-west-2, median"] == "122 ms"
    assert values["share of requests on a new connection"] == "1 %"
    assert all(source for _, _, source in listed)
    told = assumptions(network_for(SEOUL, OREGON, privatelink=False, round_trip_s=0.1))
    assert not any("round trip ap" in text or "PrivateLink" in text for text, _, _ in told)


def test_a_streamed_megatoken_is_a_third_of_a_gigabyte() -> None:
    assert bytes_of(1, 0, 1) == (1_000, 364)
    assert bytes_of(2, 1_000, 1_000_001) == (6_000, 0.364e9 + 364)


def test_an_unknown_region_is_named_with_its_nearest() -> None:
    with pytest.raises(ScenarioError, match="us-west-3") as error:
        network_for("us-west-3", VIRGINIA)
    assert "us-west-2" in error.value.fix and "client_region" in error.value.what
    with pytest.raises(ScenarioError, match=r"fleet\.region") as error:
        network_for(VIRGINIA, "seoul")
    assert "ap-northeast-2" in error.value.fix


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("tail", 0.9),
        ("new_connection_share", 1.2),
        ("new_connection_share", -0.1),
        ("privatelink_latency_s", -1e-3),
        ("round_trip_s", -1.0),
        ("round_trip_s", float("nan")),
        ("tls", "1.1"),
    ],
)
def test_impossible_parameters_are_refused_with_an_example(key: str, bad: object) -> None:
    with pytest.raises(ScenarioError, match=r"network\.") as error:
        network_for(SEOUL, OREGON, **{key: bad})
    assert error.value.fix

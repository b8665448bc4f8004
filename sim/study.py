"""From a scenario and the files it names to a Study: what is played, and what it costs per hour and byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fleetcast.errors import ScenarioError, suggest
from fleetcast.profiles import prices
from fleetcast.profiles.curve import Curve, curve_of
from fleetcast.profiles.hardware import instances
from fleetcast.profiles.profile import Point, Profile
from fleetcast.profiles.read import LoadedProfile
from fleetcast.sim import network as net
from fleetcast.sim.contract import Replica
from fleetcast.sim.cost import Benchmark, Tariff, best_rate
from fleetcast.sim.loops import loop_of
from fleetcast.sim.replicate import Study, with_speed
from fleetcast.sim.scenario import Scenario
from fleetcast.sim.thresholds import Threshold
from fleetcast.traffic.change import apply_changes
from fleetcast.traffic.read import read_trace
from fleetcast.traffic.resample import fit_days
from fleetcast.traffic.trace import Trace
from fleetcast.units import DAY

PER_REQUEST = ("ttft", "tpot", "e2e")
"""Latencies that every request has, so that goodput can be counted by them."""


@dataclass(frozen=True)
class Case:
    """A scenario with everything it names: the profile, the traffic, the study and the tariff."""

    scenario: Scenario
    loaded: LoadedProfile
    trace: Trace
    study: Study
    tariff: Tariff
    benchmark: Benchmark
    instance: str
    thresholds: tuple[Threshold, ...] = field(default_factory=tuple)

    @property
    def profile(self) -> Profile:
        """The profile itself."""
        return self.loaded.profile


def make_case(scenario: Scenario, loaded: LoadedProfile, trace: Trace, thresholds: Sequence[Threshold]) -> Case:
    """Put together what a scenario plays; every mistake in it that can be known before playing is raised here."""
    trace = apply_changes(trace, scenario.traffic_change or (), scenario.seed, read_trace)
    profile = loaded.profile
    curve = curve_of(profile)
    instance = scenario.fleet.instance or profile.hardware.instance
    network = _network(scenario)
    study = Study(
        days=fit_days(trace, scenario.traffic.day_cv),
        replay=scenario.replay,
        curve=curve,
        replica=_replica(scenario, profile, curve),
        extrapolate=scenario.engine.beyond == "extrapolate",
        routing=scenario.fleet.routing,
        network=network,
        seed=scenario.seed,
        drain_s=scenario.traffic.drain,
        latency_limits=_latency_limits(thresholds),
        overrides=_overrides(scenario),
        loop=loop_of(scenario),
    )
    return Case(
        scenario,
        loaded,
        trace,
        study,
        _tariff(scenario, instance),
        _benchmark(profile, curve),
        instance,
        tuple(thresholds),
    )


def _network(scenario: Scenario) -> net.Network:
    settings, region = scenario.network, scenario.fleet.region
    client = settings.client_region or region
    if region not in net.regions():
        raise ScenarioError(f'fleet.region = "{region}"', why="no such region", fix=suggest(region, net.regions()))
    net.round_trip(client, region)  # checks the names, also where nothing is in between
    if settings.kind == "none":
        return net.NO_NETWORK
    return net.network_for(
        client,
        region,
        privatelink=settings.kind == "privatelink",
        privatelink_latency_s=settings.privatelink_latency,
        round_trip_s=settings.round_trip,
        tail=settings.tail,
        new_connection_share=settings.new_connection_share,
        tls=settings.tls,
    )


def _overrides(scenario: Scenario) -> dict[str, float]:
    step = scenario.step
    named = {
        "prefill_fixed_s": step.prefill_fixed,
        "prefill_per_token_s": step.prefill_per_token,
        "kv_per_token_s": step.kv_per_token,
        "mixing": step.mixing,
        "request_overhead_s": step.request_overhead,
        "noise_cv": step.noise_cv,
    }
    return {name: value for name, value in named.items() if value is not None}


def _replica(scenario: Scenario, profile: Profile, curve: Curve) -> Replica:
    """Return the limits of a replica (the profile's, or what overrides them) with the central speed."""
    engine = scenario.engine
    seats = _at_most(MOST_SEATS, "engine.max_num_seqs", engine.max_num_seqs or profile.engine.max_num_seqs)
    extrapolate = engine.beyond == "extrapolate"
    limits = Replica(
        step_s=np.zeros(seats + 1),
        max_num_seqs=seats,
        max_batched_tokens=_at_most(
            MOST_TOKENS,
            "engine.max_batched_tokens",
            engine.max_batched_tokens or profile.engine.max_batched_tokens,
        ),
        policy=engine.policy or profile.engine.policy,
        max_prompts_per_iteration=engine.max_prompts_per_iteration or profile.engine.max_prompts_per_iteration,
        batch_delay_s=profile.engine.batch_delay or 0.0 if engine.batch_delay is None else engine.batch_delay,
        kv_blocks=_unless_absent("engine.kv_blocks", engine.kv_blocks or profile.engine.kv_blocks),
        max_context=_unless_absent("model.max_context", engine.max_context or profile.model.max_context),
    )
    replica = with_speed(limits, curve.central, extrapolate, _overrides(scenario))
    for name in ("prefill_fixed", "prefill_per_token", "kv_per_token", "request_overhead", "time"):
        longest = np.nanmax(replica.step_s) if name == "time" else getattr(replica, f"{name}_s")
        if longest > DAY:
            raise ScenarioError(f"step.{name} = {longest:g} s", why="that is longer than a day", fix="check its unit")
    return replica


MOST_SEATS = 65_536
"""Sequences at once on one replica: some hundred times what engines run, and a table of every batch still fits."""

MOST_TOKENS = 2**31 - 1


def _at_most(most: int, name: str, value: int) -> int:
    if value > most:
        raise ScenarioError(f"{name} = {value}", why=f"it is at most {most:,}", fix=f"write {name} = {most}")
    return value


def _unless_absent(name: str, value: int | None) -> int | None:
    return None if value is None else _at_most(MOST_TOKENS, name, value)


def _latency_limits(thresholds: Sequence[Threshold]) -> tuple[tuple[str, float], ...]:
    """Return, per latency, what a request has to stay below: the strictest upper limit on a percentile of it."""
    found: dict[str, float] = {}
    for threshold in thresholds:
        statistic, _, latency = threshold.metric.rstrip(")").partition("(")
        if latency in PER_REQUEST and statistic != "mean" and threshold.op.startswith("<"):
            below = threshold.limit if threshold.op == "<" else float(np.nextafter(threshold.limit, np.inf))
            found[latency] = min(below, found.get(latency, np.inf))
    return tuple(sorted(found.items()))


def _tariff(scenario: Scenario, instance: str) -> Tariff:
    region = scenario.fleet.region
    client = scenario.network.client_region or region
    on_demand = prices.on_demand(instance, region)
    kind = scenario.network.kind
    if kind == "none":
        return Tariff(on_demand)
    transfer = client != region
    private = kind == "privatelink"
    return Tariff(
        on_demand,
        endpoint_hour=prices.endpoint_hour(client) if private else None,
        endpoint_gb=prices.endpoint_gb() if private else None,
        transfer_in=prices.inter_region_gb(client, region) if transfer else None,
        transfer_out=prices.inter_region_gb(region, client) if transfer else None,
        endpoint_zones=scenario.network.endpoint_zones,
    )


def _benchmark(profile: Profile, curve: Curve) -> Benchmark:
    best: Point | None = max(
        (point for point in profile.point if point.output_tps), key=lambda p: p.output_tps or 0.0, default=None
    )
    if best is not None:
        size = best.batch or best.concurrency
        return best_rate([], [], best.output_tps, None if size is None else int(size))
    return best_rate(curve.central.batch, curve.central.time_s)


def offered_where(instance: str, region: str) -> tuple[bool, str] | None:
    """Tell whether *region* offers *instance*, and of what date that is; None where nothing is known."""
    known = instances().get(instance)
    return None if known is None or not known.regions else (region in known.regions, known.regions_date)


def with_thresholds(case: Case, thresholds: Sequence[Threshold]) -> Case:
    """Return the case with other thresholds, and goodput counted by them."""
    study = replace(case.study, latency_limits=_latency_limits(thresholds))
    return replace(case, thresholds=tuple(thresholds), study=study)

"""What a careful reader should be told: alerts about this run, and the assumptions that its numbers rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetcast.errors import FleetcastError
from fleetcast.profiles.memory import kv_blocks_of
from fleetcast.profiles.range import measured_lengths
from fleetcast.sim import network as net
from fleetcast.sim.contract import BLOCK_TOKENS
from fleetcast.sim.cost import Bill
from fleetcast.sim.estimate import Estimate
from fleetcast.sim.sizing import Choice
from fleetcast.sim.study import Case, offered_where

OUTSIDE = 0.05
"""Shares of requests whose length was not measured below this are not worth an alert: tails are always longer."""

WORTH_TELLING = 0.001
"""Shares of busy time below this are not worth an alert."""


def alerts(
    case: Case, metrics: Mapping[str, Estimate], basis: Mapping[str, float], account: Bill, choice: Choice | None
) -> list[dict[str, Any]]:
    """Return what may overturn the verdict, the gravest first: code, text, share and what to do."""
    found: list[dict[str, Any]] = []

    def add(code: str, text: str, share: float | None, do: str) -> None:
        found.append({"code": code, "text": text, "share": share, "do": do})

    scenario, profile = case.scenario, case.profile
    if choice is not None and not choice.meets:
        add("no-fleet", "no fixed fleet meets the thresholds on the choosing days; more replicas stop helping", None,
            "loosen the threshold, or try a faster profile")  # fmt: skip
    if choice is not None and choice.unmeasured:
        last = int(case.study.curve.central.batch[-1])
        add("unmeasured-smaller", f"a smaller fleet was passed over only because it needs batches above {last}: "
            "not measured", None, f"--set engine.max_num_seqs={last}")  # fmt: skip
    unfinished = metrics["unfinished"].value or 0.0
    if unfinished:
        offered = metrics["offered"].value or 1.0
        add("unfinished", f"{unfinished:,.0f} requests a day were not finished: the fleet cannot keep up",
            unfinished / offered, "simulate with more --replicas")  # fmt: skip
    rejected = metrics["rejected"].value or 0.0
    if rejected:
        longest = int((case.trace.input_tokens.astype("int64") + case.trace.output_tokens).max())
        limit = case.study.replica.max_context
        why = f"longer than the model's {limit:,} tokens" if limit and longest > limit else "larger than the KV cache"
        add("rejected", f"{rejected:,.0f} requests a day were turned away: {why} (the longest has {longest:,})",
            rejected / (metrics["offered"].value or 1.0), "shorten the traffic, or raise the limit")  # fmt: skip
    if basis["unmeasured"] > 0:
        add("unmeasured-batch",
            f"{100 * basis['unmeasured']:.1f} % of busy time ran at batches above what was measured",
            basis["unmeasured"], f"--set engine.max_num_seqs={case.study.curve.central.batch[-1]}")  # fmt: skip
    if basis["modelled"] > WORTH_TELLING:
        add("modelled-batch",
            f"{100 * basis['modelled']:.1f} % of busy time ran at modelled batch sizes, not measured ones; "
            "each run draws a speed", basis["modelled"], f"simulate profile show {scenario.profile}")  # fmt: skip
    for which, what in (("input_tokens", "prompt"), ("output_tokens", "answer")):
        span = measured_lengths(profile, which)
        if span is not None:
            tokens = getattr(case.trace, which)
            outside = float(((tokens < span[0]) | (tokens > span[1])).mean())
            if outside > OUTSIDE:
                measured = f"{span[0]:,.0f}" if span[0] == span[1] else f"{span[0]:,.0f}–{span[1]:,.0f}"
                add(f"{what}-length", f"{100 * outside:.1f} % of requests have {what}s of another length than was "
                    f"measured ({measured} tokens)", outside, "measure with lengths like your traffic's")  # fmt: skip
    cache = _kv_tokens(case)
    wanted = case.study.replica.max_num_seqs * float((case.trace.input_tokens + case.trace.output_tokens / 2).mean())
    if cache is not None and wanted > cache:
        add("kv-memory", f"{case.study.replica.max_num_seqs} sequences of this traffic hold {wanted:,.0f} tokens, the "
            f"KV cache of {case.instance} some {cache:,}", None,
            f"--set engine.kv_blocks={cache // BLOCK_TOKENS}")  # fmt: skip
    dated = case.tariff.instance.date
    if scenario.as_of is not None and scenario.as_of < dated[: len(scenario.as_of)]:
        add("older-than-prices", f"prices are of {dated}, later than as_of = {scenario.as_of}; no older ones are known",
            None, "set as_of to a later day, or read the cost with care")  # fmt: skip
    if any(line.inferred for line in account.lines):
        items = ", ".join(dict.fromkeys(line.item for line in account.lines if line.inferred))
        add("inferred-price", f"price of {items} for {scenario.fleet.region} is inferred; the bill says from what",
            None, f"simulate prices show --instance {case.instance} --region {scenario.fleet.region}")  # fmt: skip
    offered_here = offered_where(case.instance, scenario.fleet.region)
    if offered_here is not None and not offered_here[0]:
        add("not-offered", f"{case.instance} was not offered in {scenario.fleet.region} as of {offered_here[1]}", None,
            "choose another --region, or check what AWS offers today")  # fmt: skip
    if case.instance != profile.hardware.instance:
        add("other-instance",
            f"speed was measured on {profile.hardware.instance}, the bill is for {case.instance}", None,
            "measure on the instance you pay for")  # fmt: skip
    if scenario.runs == 1 and not case.study.certain:
        add("one-run", "a single run has no interval", None, "simulate with --runs 20")
    return found


def _kv_tokens(case: Case) -> int | None:
    """Return the KV cache of the instance in tokens where it can be derived and the run does not limit it."""
    if case.study.replica.kv_blocks is not None:
        return None
    try:
        blocks = kv_blocks_of(case.profile)
    except FleetcastError:
        return None
    return None if blocks is None else blocks * BLOCK_TOKENS


def assumptions(case: Case) -> list[dict[str, str]]:
    """Return every assumption: what, with which value, and where that comes from."""
    scenario, trace = case.scenario, case.trace
    rows = [(note.text, note.value, note.source) for note in case.study.curve.notes]
    rows += net.assumptions(case.study.network)
    if not scenario.replay:
        rows.append(("days differ: coefficient of variation of the day-level factor", f"{scenario.traffic.day_cv:g}",
                     "assumption; published traces show 0.3 or more (BurstGPT, ServeGen)"))  # fmt: skip
        rows.append(("arrivals inside a minute", "uniform (Poisson)",
                     "a lower bound on tails for traffic of few, bursty clients"))  # fmt: skip
    rows.append(("the fleet is up when the day begins, and the day starts empty", "no cold start", "fixed fleet"))
    for line in [case.tariff.instance]:
        rows.append((f"on-demand price of {case.instance}", f"${line.usd:g}/h", f"{line.source}, {line.date}"))
    rows += [("traffic", note, trace.name) for note in trace.notes]
    return [{"text": text, "value": value, "source": source} for text, value, source in rows]

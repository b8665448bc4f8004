"""A speed curve where only a few points were measured: roofline priors below them, the measurements at them.

Decoding at batch 1 reads the weights once, so a step lasts weights / (bandwidth × efficiency) plus the launch of the
kernels; between batch 1 and the first measured batch the step is a straight line. A prompt token costs 2 × active
parameters operations. Both efficiencies are ranges, so the curve is one too: a fast and a slow end, to be sampled.

Left out: what context length adds to a step (it is inside the measured one), collectives between accelerators (inside
the launch), a mixture of experts that reads more experts as the batch grows (inside the line up to the measurement).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import NotMeasured
from fleetcast.profiles import hardware
from fleetcast.profiles.check import middle
from fleetcast.profiles.memory import bytes_and_format
from fleetcast.profiles.profile import Assumption, Point, Profile
from fleetcast.units import duration

# Shares of the peak that are reached in practice (slow, fast) and the launch of a step's kernels.
BANDWIDTH_SHARE = (0.6, 0.9)
ARITHMETIC_SHARE = (0.3, 0.7)
LAUNCH = ("6 ms", "1 ms")
USUAL = "usual range in practice: a prior, not a measurement"


@dataclass(frozen=True)
class Modelled:
    """Step times (seconds) by batch at the fast and the slow end, and what a prompt costs at both."""

    batch: NDArray[np.int64]
    fast: NDArray[np.float64]
    slow: NDArray[np.float64]
    basis: tuple[str, ...]
    prefill_fast: float
    prefill_slow: float
    overhead_fast: float
    overhead_slow: float
    notes: tuple[Assumption, ...]


@dataclass(frozen=True)
class Roofline:
    """What the hardware catalogue says a profile's model can do at best."""

    weights_read: float  # bytes of one step at batch 1
    bandwidth: float  # bytes/s, all accelerators
    flops: float  # FLOP/s in the format the model computes in, all accelerators
    active: float  # parameters a token uses
    notes: tuple[Assumption, ...]

    def step_at_one(self, share: float, launch: str) -> float:
        """Seconds of a step of one sequence at a *share* of the bandwidth, after the *launch*."""
        return self.weights_read / (self.bandwidth * share) + duration(launch, "launch")

    def prompt_token(self, share: float) -> float:
        """Seconds of one prompt token at a *share* of the peak arithmetic."""
        return 2.0 * self.active / (self.flops * share)


def roofline(profile: Profile) -> Roofline:
    """Look up what the model of the curve needs; NotMeasured names every key that is missing."""
    model, used = profile.model, profile.hardware
    instance = hardware.instances().get(used.instance)
    text = used.accelerator or (instance.accelerator if instance else "")
    if not hardware.knows_accelerator(text) and instance is not None:
        text = instance.accelerator
    missing = []
    if model.parameters is None:
        missing.append("model.parameters (as 8.0e9)")
    if model.precision is None:
        missing.append('model.precision (as "fp8")')
    if not hardware.knows_accelerator(text):
        named = f'; "{text}" is not in the catalogue' if text else ""
        missing.append(f"a hardware.instance of EC2 or a known hardware.accelerator{named}")
    if model.parameters is None or model.precision is None or missing:
        why = "it has points but no [step], and a curve through points needs the weights and the hardware"
        fix = f"add {' and '.join(missing)}, or a [step] of your own"
        raise NotMeasured(f"{profile.name}: no speed curve", why=why, fix=fix)
    accelerator = hardware.accelerator(text)
    size, wanted = bytes_and_format(model.precision)
    native = wanted in accelerator.peak_flops
    peak = accelerator.peak_flops.get(wanted, accelerator.peak_flops.get("fp16"))
    if peak is None:
        why = f"the catalogue has no peak arithmetic of {accelerator.name}, so the cost of a prompt is unknown"
        raise NotMeasured(f"{profile.name}: no speed curve", why=why, fix="write a [step] of your own")
    bandwidth = instance.bandwidth_Bps if instance is not None else accelerator.bandwidth_Bps
    active = model.active_parameters or model.parameters
    arithmetic = wanted if native else "fp16"
    data_sheet = f"{accelerator.source} ({accelerator.date})"
    notes = [
        Assumption(
            f"memory bandwidth of {used.count:g} × {accelerator.name}", f"{bandwidth / 1e9:g} GB/s each", data_sheet
        ),
        Assumption(
            f"peak {arithmetic.upper()} arithmetic of {used.count:g} × {accelerator.name}",
            f"{peak / 1e12:g} TFLOP/s each",
            data_sheet,
        ),
    ]
    if model.precision.strip().lower() == "int8":
        text = "INT8 is taken as weight-only, one byte a parameter in memory"
        notes.append(Assumption(text, "arithmetic in FP16", "how LLM engines use INT8 unless they say W8A8"))
    elif not native:
        text = f"no {wanted.upper()} arithmetic is known of {accelerator.name}"
        source = "weight-only kernels keep the memory saving and compute in FP16"
        notes.append(Assumption(text, "arithmetic in FP16", source))
    if active != model.parameters:
        text = "in a mixture of experts a step at batch 1 reads the active parameters alone"
        notes.append(Assumption(text, f"{active / 1e9:g} of {model.parameters / 1e9:g} billion", "the profile"))
    return Roofline(active * size, bandwidth * used.count, peak * used.count, active, tuple(notes))


def steps_of(point: Point, max_num_seqs: int) -> tuple[int, list[float], str] | None:
    """Return the batch a point ran at, the step times its figures amount to, and how; None where they say nothing.

    Several estimates of one point (time between tokens; (E2E − TTFT) / (output − 1)) stay apart: their spread is the
    uncertainty of the measurement.
    """
    output = point.output_tokens.average if point.output_tokens is not None else None
    if point.kind == "static":
        batch = int(point.load)
        if point.output_tps is not None:
            return batch, [batch / point.output_tps], "batch / throughput, the prompts' time inside"
        if point.latency is not None and output:
            return batch, [point.latency / output], "latency / output tokens, the prompts' time inside"
    first, whole = middle(point.ttft), middle(point.e2e)
    steps = [gap for gap in (middle(point.itl), middle(point.tpot)) if gap]
    if first is not None and whole is not None and whole > first and output is not None and output > 1:
        steps.append((whole - first) / (output - 1))
    how = "time between tokens, others' prompts inside"
    if point.kind == "open":
        rate = point.output_tps or (point.load * output if output else None)
        if not steps or rate is None:
            return None
        # Little's law: sequences decoding = tokens a second × seconds a token of each.
        batch = round(rate * sum(steps) / len(steps))
        return min(max(1, batch), max_num_seqs), steps, how
    batch = min(int(point.load), max_num_seqs)
    if not steps and point.output_tps is not None:
        return batch, [batch / point.output_tps], "users / throughput, prompts and waiting inside"
    if not steps and whole is not None and output:
        return batch, [whole / output], "response time / output tokens, prompts and waiting inside"
    return (batch, steps, how) if steps else None


def model(profile: Profile) -> Modelled:
    """Build the curve of a profile that has points only; NotMeasured where too little is known."""
    limits = roofline(profile)
    notes = list(limits.notes)
    low: dict[int, float] = {}
    high: dict[int, float] = {}
    for point in profile.point:
        measured = steps_of(point, profile.engine.max_num_seqs)
        if measured is None:
            continue
        batch, steps, how = measured
        low[batch] = min(*steps, low.get(batch, steps[0]))
        high[batch] = max(*steps, high.get(batch, steps[0]))
        notes.append(
            Assumption(f"the step at batch {batch} is read off a {point.kind} point", how, "the profile's point")
        )
    if not low:
        why = "none of its points holds a throughput or a time between tokens"
        raise NotMeasured(f"{profile.name}: no speed curve", why=why, fix="add output_tps or itl to a [[point]]")
    batches = sorted(low)
    fast = np.maximum.accumulate([low[b] for b in batches])
    slow = np.maximum.accumulate([high[b] for b in batches])
    basis = ["measured"] * len(batches)
    if batches[0] > 1:
        notes += _below(limits, batches[0], float(fast[0]))
        one_fast = min(limits.step_at_one(BANDWIDTH_SHARE[1], LAUNCH[1]), fast[0])
        one_slow = min(limits.step_at_one(BANDWIDTH_SHARE[0], LAUNCH[0]), slow[0])
        batches.insert(0, 1)
        fast, slow = np.insert(fast, 0, one_fast), np.insert(slow, 0, one_slow)
        basis.insert(0, "modelled")
    token_slow, token_fast = (limits.prompt_token(share) for share in ARITHMETIC_SHARE)
    text = "a prompt token takes 2 × active parameters operations at this share of the peak"
    notes.append(Assumption(text, _percent(ARITHMETIC_SHARE), USUAL))
    first = _first_token(profile)
    over_fast, over_slow = 0.0, 0.0
    if first is not None:
        point, ttft = first
        prompt = point.input_tokens.average if point.input_tokens is not None else 0.0
        at = int(np.searchsorted(batches, min(point.load, batches[-1])))
        # A request waits half a step on average for the one that runs, then shares one with its prompt.
        over_fast = max(0.0, ttft - prompt * token_fast - 1.5 * float(fast[at]))
        over_slow = max(0.0, ttft - prompt * token_slow - 1.5 * float(slow[at]))
    notes += _provisional(profile, first)
    return Modelled(
        batch=np.array(batches, dtype=np.int64),
        fast=np.asarray(fast, dtype=np.float64),
        slow=np.asarray(slow, dtype=np.float64),
        basis=tuple(basis),
        prefill_fast=token_fast,
        prefill_slow=token_slow,
        overhead_fast=over_fast,
        overhead_slow=over_slow,
        notes=tuple(notes),
    )


def _percent(shares: tuple[float, float]) -> str:
    return f"{shares[0] * 100:g}–{shares[1] * 100:g} %"


def _below(limits: Roofline, first: int, measured: float) -> list[Assumption]:
    share = f"{_percent(BANDWIDTH_SHARE)} of the bandwidth"
    launch = f"{LAUNCH[1]} to {LAUNCH[0]} to launch it"
    text = f"a step at batch 1 reads {limits.weights_read / 1e9:.3g} GB, and is no longer than at batch {first}"
    notes = [
        Assumption(text, f"{share}, {launch}", USUAL),
        Assumption(f"batches between 1 and {first} were not measured", "a straight line", "memory-bound decoding"),
    ]
    if limits.weights_read / limits.bandwidth > measured:
        text = f"check the figures: the step at batch {first} is shorter than reading the weights once takes"
        notes.append(Assumption(text, f"{measured:.3g} s", "weights / peak memory bandwidth"))
    return notes


def _first_token(profile: Profile) -> tuple[Point, float] | None:
    """Return the closed point of least load that has a TTFT and does not queue for seats, with that TTFT."""
    fits = [
        (point, ttft)
        for point in profile.point
        if point.kind == "closed" and point.load <= profile.engine.max_num_seqs and (ttft := middle(point.ttft))
    ]
    return min(fits, key=lambda pair: pair[0].load) if fits else None


def _provisional(profile: Profile, first: tuple[Point, float] | None) -> list[Assumption]:
    notes = []
    kinds = {point.kind for point in profile.point}
    if "static" in kinds:
        text = "measured in static batches, played with the engine's own batching"
        value = "prompts are counted in the step too: slower rather than faster"
        notes.append(Assumption(text, value, "the point's kind"))
    if kinds & {"closed", "open"}:
        text = "the step is read off averages of a load test, not fitted by replaying it"
        notes.append(Assumption(text, "provisional", "the point's kind"))
        if first is not None:
            text = (
                f"the TTFT at {first[0].load:g} users beyond the modelled prompt is a fixed overhead of every request"
            )
            notes.append(Assumption(text, "network of the benchmark included", "the profile's point"))
        else:
            text = "no TTFT was published, so first tokens are modelled without a front end's overhead"
            notes.append(Assumption(text, "0 s", "the profile's points"))
    return notes

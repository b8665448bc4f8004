"""The result: one plain dictionary that `results.json` holds, `--format json` prints and every report reads.

Only what the inputs and the seed determine is in it: no wall time, worker count or output folder, so the same inputs
and seed give the same bytes. Numbers are rounded to ten significant digits.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast import __version__
from fleetcast.sim import estimate as est
from fleetcast.sim.cost import Bill, Usage, bill, billed_seconds
from fleetcast.sim.estimate import Estimate
from fleetcast.sim.grades import grades
from fleetcast.sim.metrics import LATENCIES, fleet_metrics, latency_metrics, token_counts
from fleetcast.sim.remarks import alerts, assumptions
from fleetcast.sim.replicate import OTHERS, Day, play_days
from fleetcast.sim.scenario import DEFAULT_THRESHOLD
from fleetcast.sim.sizing import Choice, choose, helped
from fleetcast.sim.study import Case, with_thresholds
from fleetcast.sim.thresholds import METRICS, exit_code, judge, parse_threshold
from fleetcast.traffic.arrivals import MINUTE

SCHEMA = 1
CURVE = tuple([0.001, 0.005, *np.round(np.arange(0.01, 0.995, 0.01), 2).tolist(), 0.995, 0.999, 0.9999])
BAND = (5.0, 95.0)
MOST_POINTS = 1_440


@dataclass(frozen=True)
class Result:
    """What a simulation found: the dictionary, and the days that keep their requests."""

    data: dict[str, Any]
    days: tuple[Day, ...]

    @property
    def exit_code(self) -> int:
        """0 all thresholds hold, 1 one is crossed, 3 none crossed but one undecided."""
        return int(self.data["exit_code"])


def simulate(
    case: Case,
    workers: int = 1,
    keep: Sequence[int] = (),
    tell: Callable[[str], None] = lambda text: None,
    each: Callable[[Day], None] | None = None,
) -> Result:
    """Play a case and say what came out.

    *tell* hears of the progress. The runs in *keep* carry the table of their requests; *each* gets every day as it is
    played, and where it is given the tables are not kept any longer.
    """
    scenario, choice = case.scenario, None
    sha256 = _sha256(scenario.traffic.file)  # now: a long run must not put its name to what the file holds later
    default = not case.thresholds and scenario.fleet.replicas is None
    if default:
        case = with_thresholds(case, [parse_threshold(DEFAULT_THRESHOLD)])
    if scenario.fleet.replicas is None:
        goals = case.thresholds
        if not any(helped(threshold) for threshold in goals):
            goals = (*goals, parse_threshold(DEFAULT_THRESHOLD))
        choice = choose(case.study, goals, workers, tell)
    replicas = choice.replicas if choice else scenario.fleet.replicas or 1
    days: list[Day] = []
    for day in play_days(case.study, replicas, range(scenario.runs), workers, keep=keep):
        tell(f"day {len(days) + 1} of {scenario.runs}")
        if each is not None:
            each(day)
            day = replace(day, requests=None)
        days.append(day)
    data = _describe(case, days, replicas, choice, default, sha256)
    return Result(rounded(data), tuple(days))


def _describe(
    case: Case, days: Sequence[Day], replicas: int, choice: Choice | None, default: bool, sha256: str
) -> dict[str, Any]:
    scenario, study = case.scenario, case.study
    account = _account(case, days)
    noise = study.replica.noise_cv
    metrics = {**latency_metrics(days, noise), **fleet_metrics(days, account)}
    verdicts = [judge(threshold, metrics[threshold.metric]) for threshold in case.thresholds]
    occupancy = _occupancy(case, days)
    basis = _shares_by_basis(occupancy)
    return {
        "schema": SCHEMA,
        "versions": {"fleetcast": __version__, **{name: version(name) for name in ("numba", "numpy", "simpy")}},
        "inputs": [
            {"role": "profile", "path": case.loaded.path, "sha256": case.loaded.sha256},
            {"role": "traffic", "path": scenario.traffic.file, "sha256": sha256},
        ],
        "command": command(case),
        "scenario": scenario.resolved(),
        "seed": scenario.seed,
        "runs": scenario.runs,
        "mode": "replay" if scenario.replay else "resample",
        "summary": _summary(case, replicas, choice, default),
        "metrics": {
            name: {"unit": METRICS[name].unit, "value": e.value, "low": e.low, "high": e.high, "level": e.level,
                   "n": e.n, "note": e.note}
            for name, e in metrics.items()
        },
        "grades": grades(metrics),
        "thresholds": [
            {"text": t.text, "metric": t.metric, "op": t.op, "limit": t.limit, "unit": t.unit,
             **_bounds(metrics[t.metric]), "verdict": verdict, "default": default}
            for t, verdict in zip(case.thresholds, verdicts, strict=True)
        ],
        "bill": _bill(account),
        "latency": _latency(days, noise),
        "occupancy": occupancy,
        "busy_basis": basis,
        "by_tenant": _by_tenant(days),
        "timeline": _timeline(days),
        "alerts": alerts(case, metrics, basis, account, choice),
        "assumptions": assumptions(case),
        "exit_code": exit_code(verdicts),
    }  # fmt: skip


def command(case: Case) -> str:
    """Return the command that gives this result again."""
    scenario = case.scenario
    words = ["simulate", "--profile", scenario.profile, "--traffic", scenario.traffic.file]
    if scenario.fleet.replicas is not None:
        words += ["--replicas", str(scenario.fleet.replicas)]
    words += ["--runs", str(scenario.runs), "--seed", str(scenario.seed)]
    words += ["--replay"] if scenario.replay else []
    shown = {"profile", "runs", "seed", "replay", "thresholds", "schema", "traffic.file", "fleet.replicas"}
    for key, value in _changed(scenario.resolved(), _defaults(case)):
        if key not in shown:
            words += ["--set", f"{key}={value if isinstance(value, str) else _toml(value)}"]
    for threshold in case.thresholds if scenario.thresholds else ():
        words += ["--threshold", threshold.text]
    return shlex.join(words)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def _defaults(case: Case) -> dict[str, Any]:
    plain = {"profile": case.scenario.profile, "traffic": case.scenario.traffic.file}
    return type(case.scenario).model_validate(plain).resolved()


def _changed(table: dict[str, Any], default: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) and key != "thresholds":
            found += _changed(value, default.get(key, {}), f"{path}{key}.")
        elif value != default.get(key):
            found.append((f"{path}{key}", value))
    return found


def _sha256(path: str) -> str:
    """Return the hash of a file, or of a folder's files with their names."""
    where = Path(path)
    if where.is_dir():
        whole = hashlib.sha256()
        for file in sorted(file for file in where.rglob("*") if file.is_file()):
            whole.update(f"{file.relative_to(where).as_posix()} {_sha256(str(file))}\n".encode())
        return whole.hexdigest()
    with where.open("rb") as file_:
        return hashlib.file_digest(file_, "sha256").hexdigest()


def _bounds(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _account(case: Case, days: Sequence[Day]) -> Bill:
    usages = [
        Usage(
            span_s=day.span_s,
            replica_s=billed_seconds(day.lives_s),
            busy_s=day.busy_s,
            completed_output_tokens=day.output_tokens,
            bytes_in=day.bytes_in,
            bytes_out=day.bytes_out,
        )
        for day in days
    ]
    return bill(usages, case.tariff, case.benchmark, instance=case.instance)


def _bill(account: Bill) -> dict[str, Any]:
    return {
        "lines": [vars(line) for line in account.lines],
        "usd_per_day": account.usd_per_day.value,
        "usd_per_mtok": account.usd_per_mtok.value,
        "waterfall": [vars(step) for step in account.waterfall],
    }


def _summary(case: Case, replicas: int, choice: Choice | None, default: bool) -> dict[str, Any]:
    scenario, trace, profile, study = case.scenario, case.trace, case.profile, case.study
    minutes = study.days.minute_counts / MINUTE
    every = -(-len(minutes) // MOST_POINTS)
    coarse = np.add.reduceat(minutes, np.arange(0, len(minutes), every)) / every
    why = ""
    if choice is not None:
        goals = [t.text for t in case.thresholds if helped(t)] or [DEFAULT_THRESHOLD]
        days = f"on {choice.days} day{'s' if choice.days > 1 else ''} of its own"
        meets = f"smallest fixed fleet that meets {', '.join(goals)} {days}"
        if choice.unmeasured:
            meets += "; one replica less would need a batch that was not measured"
        why = (
            meets
            if choice.meets
            else f"no fixed fleet meets {', '.join(goals)} {days}; more replicas stop helping here"
        )
    return {
        "traffic": {
            "name": Path(scenario.traffic.file).name,
            "requests": len(trace),
            "span_s": study.days.horizon_s,
            "mean_rate": len(trace) / study.days.horizon_s,
            "peak_rate": float(minutes.max()),
            "mean_input_tokens": float(trace.input_tokens.mean()),
            "mean_output_tokens": float(trace.output_tokens.mean()),
            "minute_rate": coarse.tolist(),
            "minute_step_s": MINUTE * every,
            "notes": list(trace.notes),
        },
        "profile": {
            "name": profile.name,
            "model": profile.model.name,
            "precision": profile.model.precision,
            "engine": profile.engine.name,
            "accelerator": profile.hardware.accelerator,
            "count": profile.hardware.count,
            "instance": profile.hardware.instance,
            "measured": _measured(case),
            "max_num_seqs": study.replica.max_num_seqs,
            "uncertain": study.curve.uncertain,
            "notes": [vars(note) for note in study.curve.notes],
        },
        "fleet": {
            "replicas": replicas,
            "chosen": choice is not None,
            "chosen_why": why,
            "instance": case.instance,
            "region": scenario.fleet.region,
            "client_region": scenario.network.client_region or scenario.fleet.region,
            "routing": scenario.fleet.routing,
            "purchase": "on demand",
            "network": {"privatelink": "PrivateLink", "public": "public", "none": "none"}[scenario.network.kind],
            "round_trip_s": study.network.round_trip_s,
        },
    }


def _measured(case: Case) -> str:
    curve = case.study.curve
    if "stated" in curve.basis:
        return f"batch {curve.central.batch[0]}–{curve.central.batch[-1]} stated"
    sizes = [str(b) for b, basis in zip(curve.central.batch, curve.basis, strict=True) if basis == "measured"]
    return f"batch {', '.join(sizes)}" if sizes else "nothing measured"


def _latency(days: Sequence[Day], noise_cv: float) -> dict[str, Any]:
    counts, edges = token_counts(days, noise_cv)
    found: dict[str, Any] = {}
    for name in (*LATENCIES, "itl"):
        band = (
            est.histogram_curve(counts, edges, CURVE)
            if name == "itl"
            else est.curve([getattr(day, f"{name}_s") for day in days], CURVE)
        )
        known = np.isfinite(band.value)
        found[name] = {
            "quantile": band.quantile[known].tolist(),
            **{key: _nulls(getattr(band, key)[known]) for key in ("value", "low", "high")},
        }
    return found


def _nulls(values: NDArray[np.float64]) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _occupancy(case: Case, days: Sequence[Day]) -> list[dict[str, Any]]:
    seconds = np.sum([day.occupancy.sum(axis=0) for day in days], axis=0)
    total = float(seconds.sum())
    curve, replica = case.study.curve, case.study.replica
    rows: list[dict[str, Any]] = []
    fast, slow = (speed.table(replica.max_num_seqs, case.study.extrapolate) for speed in (curve.fast, curve.slow))
    for batch, spent in enumerate(seconds.tolist()):
        steps = _nulls(np.array([replica.step_s[batch], fast[batch], slow[batch]])) if batch else [None] * 3
        basis = curve.basis_of(batch) if batch else "prompt only"
        share = spent / total if total else 0.0
        rows.append({"batch": batch, "share": share, "step_s": steps[0], "fast_s": steps[1], "slow_s": steps[2],
                     "basis": basis})  # fmt: skip
    return rows


def _shares_by_basis(occupancy: Sequence[dict[str, Any]]) -> dict[str, float]:
    found = dict.fromkeys(("measured", "stated", "modelled", "unmeasured", "prompt only"), 0.0)
    for row in occupancy:
        found[row["basis"]] += row["share"]
    return found


def _by_tenant(days: Sequence[Day]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for mine in zip(*(day.tenants for day in days), strict=True):
        median, tail = est.percentiles([tenant.ttft_s for tenant in mine], [0.5, 0.99])
        rows.append({
            "tenant": mine[0].name,
            "requests": sum(tenant.requests for tenant in mine) / len(days),
            "output_tokens": sum(tenant.output_tokens for tenant in mine) / len(days),
            "p50(ttft)": median.value,
            "p99(ttft)": tail.value,
        })  # fmt: skip
    return sorted(rows, key=lambda row: (row["tenant"] == OTHERS, -row["requests"], row["tenant"]))


def _timeline(days: Sequence[Day]) -> dict[str, Any]:
    """Return the median and the 5–95 % band over runs at each sample of the day, drained tails cut off.

    More than MOST_POINTS samples are put together: the mean of their medians, the extremes of their bands.
    """
    size = min(len(day.timeline.t_s) for day in days)
    every = -(-size // MOST_POINTS)
    groups = np.arange(0, size, every)
    last = np.append(groups[1:], size) - 1
    t = days[0].timeline.t_s[:size]
    step = float(t[1] - t[0]) * every if size > 1 else MINUTE
    found: dict[str, Any] = {"step_s": step, "t_s": t[last].tolist()}
    for name in ("arrivals", "running", "waiting", "kv_use", "busy"):
        values = np.stack([getattr(day.timeline, name)[:size] for day in days])
        if np.isnan(values).all():
            continue
        low, median, high = np.percentile(values, [BAND[0], 50.0, BAND[1]], axis=0)
        found[name] = {
            "median": (np.add.reduceat(median, groups) / np.diff(np.append(groups, size))).tolist(),
            "low": np.minimum.reduceat(low, groups).tolist(),
            "high": np.maximum.reduceat(high, groups).tolist(),
        }
    return found


def rounded(value: Any) -> Any:
    """Round every float in *value* to ten significant digits; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = float(value)
    return float(f"{number:.10g}") if np.isfinite(number) else None

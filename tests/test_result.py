"""The numbers of a result against the same numbers worked out from its own tables, by other means."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small import HOURLY, PROMPTS, requests_of, simulate, timeline_of, write_crowd, write_profile, write_rows

RUNS, REPLICAS = 3, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile and a crowd of 4,200 requests in ten minutes, which two replicas serve well."""
    folder = tmp_path_factory.mktemp("result")
    write_profile(folder, seats=16, batch=(1, 16), time=("5 ms", "9 ms"))
    write_crowd(folder, n=4_200, span=600)
    return folder


def told(folder: Path, out: str, *words: object, code: tuple[int, ...] = (0,)) -> dict[str, Any]:
    said = simulate(
        "--profile", folder / "hand.toml", "--traffic", folder / "crowd.parquet", "--runs", RUNS, "--replicas",
        REPLICAS, "--workers", 1, "--keep-requests", "all", "--format", "json", "--out", folder / out, *words,
    )  # fmt: skip
    assert said.code in code, said.err
    return said.result


@pytest.fixture(scope="module")
def plain(folder: Path) -> dict[str, Any]:
    """Three random days without a network."""
    limits = (
        "--threshold",
        "p90(ttft) < 20 ms",
        "--threshold",
        "p50(e2e) <= 200 ms",
        "--threshold",
        "mean(tpot) < 1 us",
    )
    return told(folder, "plain", "--network", "none", *limits, code=(0, 1))


@pytest.fixture(scope="module")
def rows(folder: Path, plain: dict[str, Any]) -> pl.DataFrame:
    return requests_of(folder / "plain")


def close(value: float, rel: float = 1e-9) -> Any:
    return pytest.approx(value, rel=rel)


@pytest.mark.parametrize("network", ["none", "privatelink"])
def test_latencies_are_those_of_all_requests_together(folder: Path, plain: dict[str, Any], network: str) -> None:
    found = plain if network == "none" else told(folder, "private")
    table = requests_of(folder / ("plain" if network == "none" else "private"))
    metrics = found["metrics"]
    np.testing.assert_allclose(table["ttft_s"], table["first_token_s"] - table["arrival_s"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(table["e2e_s"], table["finish_s"] - table["arrival_s"], rtol=0, atol=1e-9)
    for latency in ("ttft", "tpot", "e2e"):
        values = table[f"{latency}_s"].drop_nulls().to_numpy()
        for name, quantile in {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}.items():
            metric = metrics[f"{name}({latency})"]
            assert metric["value"] == close(float(np.quantile(values, quantile)), 1e-8)
            assert metric["low"] <= metric["value"] <= metric["high"]
            assert (metric["n"], metric["unit"], metric["level"]) == (len(values), "s", 0.95)
        assert metrics[f"mean({latency})"]["value"] == close(float(values.mean()), 1e-8)
        curve = found["latency"][latency]
        expected = np.quantile(values, curve["quantile"])
        np.testing.assert_allclose(curve["value"], expected, rtol=1e-8)
    assert len(table.filter(pl.col("output_tokens") > 1)) == metrics["p50(tpot)"]["n"] < len(table)


def test_the_time_between_tokens_is_per_token(plain: dict[str, Any], rows: pl.DataFrame) -> None:
    gaps = float((rows["output_tokens"] - 1).sum())
    seconds = float((rows["finish_s"] - rows["first_token_s"]).sum())
    metric = plain["metrics"]["mean(itl)"]
    assert metric["value"] == close(seconds / gaps, 0.005) and metric["n"] == gaps
    # no gap is shorter than a step of one, and a full batch waits at most for one iteration with prompts
    assert 0.005 * 0.995 <= plain["metrics"]["p50(itl)"]["value"] <= plain["metrics"]["p99(itl)"]["value"]


def test_noise_spreads_the_time_between_tokens_about_the_same_mean(folder: Path, tmp_path: Path) -> None:
    # one request at a time: every gap is 5 ms, or with noise a Gamma of that mean and a fifth of it as deviation
    from scipy.stats import gamma

    write_rows(tmp_path, "lone.parquet", 10.0 * np.arange(60), np.ones(60), np.full(60, 500))
    alone = ("--traffic", tmp_path / "lone.parquet", "--replay", "--runs", 1)
    still = told(folder, "still", *alone)["metrics"]
    noisy = told(folder, "noisy", *alone, "--set", "step.noise_cv=0.2")["metrics"]
    law = gamma(25, scale=0.005 / 25)
    for name, quantile in {"p50": 0.5, "p90": 0.9, "p99": 0.99}.items():
        assert still[f"{name}(itl)"]["value"] == close(0.005, 0.005)
        assert noisy[f"{name}(itl)"]["value"] == close(float(law.ppf(quantile)), 0.01)
    assert noisy["mean(itl)"]["value"] == close(0.005, 0.005)
    gaps = 60 * 499
    tpot = requests_of(folder / "noisy")["tpot_s"]
    assert abs(float(tpot.mean()) - 0.005) < 4 * 0.001 / math.sqrt(gaps)  # type: ignore[arg-type]
    assert abs(float(tpot.std()) / (0.001 / math.sqrt(499)) - 1) < 4 / math.sqrt(2 * 60)  # type: ignore[arg-type]


def spans(folder: Path, table: pl.DataFrame) -> list[float]:
    """Each run lasts its ten minutes, or until the last request has left (the server's clock: no network)."""
    return [max(600.0, float(run["finish_s"].max())) for _, run in sorted(table.group_by("run"))]  # type: ignore[arg-type]


def test_counts_rates_and_the_price(folder: Path, plain: dict[str, Any], rows: pl.DataFrame) -> None:
    metrics = {name: metric["value"] for name, metric in plain["metrics"].items()}
    lasted = spans(folder, rows)
    tokens = int(rows["output_tokens"].sum())
    assert metrics["offered"] == metrics["completed"] == close(len(rows) / RUNS)
    assert (metrics["rejected"], metrics["unfinished"], metrics["errors"], metrics["preemptions"]) == (0, 0, 0, 0)
    assert metrics["throughput"] == close(tokens / sum(lasted))
    assert metrics["request_rate"] == close(len(rows) / sum(lasted))
    assert metrics["replica_hours"] == close(REPLICAS * sum(lasted) / RUNS / 3_600)
    dollars = HOURLY * REPLICAS * sum(lasted) / 3_600
    assert metrics["cost"] == close(dollars / tokens * 1e6)
    assert metrics["cost_per_day"] == close(HOURLY * REPLICAS * 24)
    assert [line["item"] for line in plain["bill"]["lines"]] == ["instances"]
    assert plain["bill"]["usd_per_mtok"] == metrics["cost"]
    per_run = rows.group_by("run").agg(pl.col("output_tokens").sum()).sort("run")["output_tokens"].to_numpy()
    rates = per_run / np.array(lasted)
    assert plain["metrics"]["throughput"]["low"] < rates.mean() < plain["metrics"]["throughput"]["high"]


def test_goodput_counts_requests_within_every_percentile_limit(plain: dict[str, Any], rows: pl.DataFrame) -> None:
    good = (rows["ttft_s"] < 0.020) & (rows["e2e_s"] <= 0.200)  # the limit on a mean is no limit on a request
    assert 0.1 < good.mean() < 0.95  # type: ignore[operator]
    assert plain["metrics"]["goodput"]["value"] == close(float(good.sum()) / len(rows))


def test_time_is_accounted_for(folder: Path, plain: dict[str, Any], rows: pl.DataFrame) -> None:
    line = timeline_of(folder / "plain")
    lasted = spans(folder, rows)
    busy = float((line["busy"] * line["replicas"]).sum()) * 60.0
    assert plain["metrics"]["utilisation"]["value"] == close(busy / (REPLICAS * sum(lasted)), 1e-6)
    shares = [row["share"] for row in plain["occupancy"]]
    assert [row["batch"] for row in plain["occupancy"]] == list(range(17))
    assert sum(shares) == close(1.0) and sum(plain["busy_basis"].values()) == close(1.0)
    assert plain["metrics"]["batch"]["value"] == close(float(np.arange(17) @ shares), 1e-8)
    assert plain["metrics"]["occupancy_full"]["value"] == close(shares[-1], 1e-8)
    assert plain["busy_basis"]["prompt only"] == shares[0] and plain["busy_basis"]["stated"] == close(1 - shares[0])
    assert [row["step_s"] for row in plain["occupancy"][1:]] == close(np.interp(range(1, 17), [1, 16], [0.005, 0.009]))
    # decoded tokens times the share of an iteration each took: busy seconds seen from the other side
    seconds = float((rows["finish_s"] - rows["first_token_s"]).sum())
    assert plain["metrics"]["batch"]["value"] * busy == close(seconds, 1e-6)


def test_the_timeline_adds_up_to_the_requests(folder: Path, plain: dict[str, Any], rows: pl.DataFrame) -> None:
    line = timeline_of(folder / "plain")
    for run, samples in line.group_by("run"):
        arrived = rows.filter(pl.col("run") == run[0])
        assert float(samples["arrivals"].sum()) * 60.0 == close(len(arrived))
    # Little: what is inside, seen once a minute, against the time that all spent inside; 30 looks, so very roughly
    inside = float((line["running"] + line["waiting"]).mean())  # type: ignore[arg-type]
    sojourn = float(rows["e2e_s"].sum()) / (RUNS * 600.0)
    assert inside == pytest.approx(sojourn, rel=0.35)
    shown = plain["timeline"]
    assert len(shown["t_s"]) == len(shown["arrivals"]["median"])
    assert shown["step_s"] <= 60.0 or shown["t_s"][1] - shown["t_s"][0] == shown["step_s"]


@pytest.mark.parametrize("words", [("--network", "none"), ("--client-region", "eu-west-1"), ("--replay",)])
def test_the_waterfall_adds_up_exactly(folder: Path, words: tuple[str, ...]) -> None:
    found = told(folder, "fall", *words)
    *parts, whole = (Decimal(repr(step["usd_per_mtok"])) for step in found["bill"]["waterfall"])
    assert sum(parts) == whole == Decimal(repr(found["bill"]["usd_per_mtok"]))
    names = [step["step"] for step in found["bill"]["waterfall"]]
    assert names == ["benchmark", "batch under-fill", "idle", "network", "effective"]
    # the best rate of the curve: 16 sequences in 9 ms
    assert float(parts[0]) == close(HOURLY / 3_600 * 0.009 / 16 * 1e6, 1e-8)
    assert (parts[3] == 0) == (words == ("--network", "none"))
    lines = found["bill"]["lines"]
    assert sum(line["usd_per_day"] for line in lines) == close(found["bill"]["usd_per_day"], 1e-8)
    items = [line["item"] for line in lines]
    assert items.count("transfer between regions") == (2 if words[-1] == "eu-west-1" else 0)
    assert ("endpoint" in items) == (words != ("--network", "none"))


def test_interval_and_n_of_every_metric(plain: dict[str, Any]) -> None:
    for name, metric in plain["metrics"].items():
        assert set(metric) == {"unit", "value", "low", "high", "level", "n", "note"}, name
        assert metric["level"] == 0.95 and metric["n"] >= 1
        assert metric["value"] is not None and metric["low"] <= metric["value"] <= metric["high"], name
    units = {name: metric["unit"] for name, metric in plain["metrics"].items() if "(" not in name}
    assert {
        "throughput": "tok/s",
        "cost": "USD/Mtok",
        "cost_per_day": "USD/day",
        "errors": "1",
    }.items() <= units.items()
    latencies = {
        f"{s}({of})" for s in ("p50", "p90", "p95", "p99", "p99.9", "mean") for of in ("ttft", "tpot", "itl", "e2e")
    }
    assert latencies == {name for name in plain["metrics"] if "(" in name}


def test_thresholds_carry_their_metric(plain: dict[str, Any]) -> None:
    for row in plain["thresholds"]:
        metric = plain["metrics"][row["metric"]]
        assert {key: row[key] for key in ("value", "low", "high", "unit")} == {
            key: metric[key] for key in ("value", "low", "high", "unit")
        }
        meets = {"<": metric["high"] < row["limit"], "<=": metric["high"] <= row["limit"]}[row["op"]]
        assert (row["verdict"] == "holds") == meets
    assert [row["verdict"] for row in plain["thresholds"]][-1] == "crossed" and plain["exit_code"] == 1


def test_inputs_are_named_with_their_hashes(folder: Path, plain: dict[str, Any]) -> None:
    import hashlib

    for row, name in zip(plain["inputs"], ("hand.toml", "crowd.parquet"), strict=True):
        assert row["path"] == str(folder / name)
        assert row["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert [row["role"] for row in plain["inputs"]] == ["profile", "traffic"]
    assert set(plain["versions"]) >= {"fleetcast", "numpy", "numba", "simpy"}
    assert plain["schema"] == 1 and plain["seed"] == 0 and plain["runs"] == RUNS and plain["mode"] == "resample"


# ---- what did not go well is counted, never dropped ----


def test_unfinished_requests_are_counted_and_infinitely_late(folder: Path) -> None:
    # one request at a time takes half a second, and seven a second arrive at two replicas
    overload = ("--set", "engine.max_num_seqs=1", "--set", "step.prefill_per_token=8 ms", "--set",
                "traffic.drain=30 s", "--network", "none")  # fmt: skip
    found = told(folder, "late", *overload, "--threshold", "p99(ttft) < 1 h", code=(1,))
    table, metrics = requests_of(folder / "late"), found["metrics"]
    open_ = table["status"] == "unfinished"
    assert 0.2 < open_.mean() < 0.9  # type: ignore[operator]
    assert table.filter(open_)["finish_s"].is_null().all() and table.filter(~open_)["finish_s"].is_not_null().all()
    assert metrics["offered"]["value"] == close(len(table) / RUNS)
    assert metrics["unfinished"]["value"] == close(open_.sum() / RUNS)
    assert metrics["errors"]["value"] == close(open_.sum() / len(table))
    assert metrics["completed"]["value"] == close((~open_).sum() / RUNS)
    for latency in ("ttft", "e2e"):
        values = table[f"{latency}_s"].fill_null(np.inf).to_numpy()
        for name, quantile in {"p50": 0.5, "p90": 0.9, "p99": 0.99}.items():
            metric = metrics[f"{name}({latency})"]
            if np.isinf(np.quantile(values, quantile, method="higher")):
                assert metric["value"] is None and metric["note"] == "lies among unfinished requests"
            else:
                assert metric["value"] == close(float(np.quantile(values, quantile)), 1e-8)
            assert metric["n"] == len(table)
    assert metrics["p99(ttft)"]["value"] is None and metrics["mean(e2e)"]["value"] is None
    only, one = (row["share"] for row in found["occupancy"])
    assert metrics["occupancy_full"]["value"] == metrics["batch"]["value"] == one and 0.1 < one < only
    assert found["thresholds"][0]["verdict"] == "crossed"
    done = table.filter(~open_)
    assert metrics["throughput"]["value"] == close(done["output_tokens"].sum() / (RUNS * 630.0))
    assert metrics["cost"]["value"] == close(HOURLY * REPLICAS * RUNS * 630 / 3_600 / done["output_tokens"].sum() * 1e6)
    alert = next(alert for alert in found["alerts"] if alert["code"] == "unfinished")
    assert alert["share"] == close(open_.sum() / len(table))


def test_a_replay_waits_for_the_last_request_whatever_may_drain(folder: Path) -> None:
    words = ("--replay", "--runs", 1, "--set", "traffic.drain=0 s", "--set", "step.prefill_per_token=8 ms")
    found = told(folder, "replay", *words, "--network", "none", "--set", "engine.max_num_seqs=1")
    table = requests_of(folder / "replay")
    assert (table["status"] == "completed").all() and float(table["finish_s"].max()) > 900  # type: ignore[arg-type]
    assert found["metrics"]["unfinished"]["value"] == found["metrics"]["errors"]["value"] == 0


def test_rejected_requests_are_errors_but_have_no_latency(folder: Path) -> None:
    found = told(folder, "long", "--set", "engine.max_context=120", "--threshold", "errors < 1 %", code=(1,))
    table, metrics = requests_of(folder / "long"), found["metrics"]
    refused = table["input_tokens"] + table["output_tokens"] > 120
    assert (refused == (table["status"] == "rejected")).all() and refused.sum() > 50
    assert metrics["rejected"]["value"] == close(refused.sum() / RUNS)
    assert metrics["errors"]["value"] == close(refused.sum() / len(table))
    assert metrics["p50(ttft)"]["n"] == (~refused).sum()
    assert found["thresholds"][0]["verdict"] == "crossed"
    alert = next(alert for alert in found["alerts"] if alert["code"] == "rejected")
    assert alert["share"] == close(refused.sum() / len(table)) and "120 tokens" in alert["text"]


def test_nothing_completed_has_no_price(folder: Path) -> None:
    found = told(folder, "none", "--set", "engine.max_context=1", "--threshold", "cost < $9/Mtok", code=(1,))
    assert found["metrics"]["errors"]["value"] == 1.0 and found["metrics"]["completed"]["value"] == 0.0
    assert found["metrics"]["cost"]["value"] is None and found["metrics"]["cost_per_day"]["value"] > 0
    assert found["metrics"]["p99(ttft)"]["value"] is None and found["thresholds"][0]["verdict"] == "crossed"
    assert [step["usd_per_mtok"] for step in found["bill"]["waterfall"][1:]] == [None] * 4


def test_a_percentile_needs_its_samples(folder: Path, tmp_path: Path) -> None:
    crowd = write_crowd(tmp_path, n=999, span=100)
    for n, known in ((999, False), (1_000, True)):
        write_crowd(tmp_path, n=n, span=100)
        found = told(folder, "few", "--traffic", crowd, "--replay", "--runs", 1)["metrics"]
        assert (found["p99(ttft)"]["value"] is not None) is known
        assert found["p95(ttft)"]["value"] is not None
        assert found["p99(ttft)"]["note"] == ("" if known else "needs 1,000 samples, has 999")


# ---- tenants ----


def test_tenants_are_told_apart_and_none_is_lost(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    n = 2_000
    names = [f"t{k:02d}" for k in rng.permutation(np.repeat(np.arange(25), 80))]
    names[:40] = [""] * 40  # of nobody
    crowd = write_rows(
        tmp_path, "tenants.parquet", np.sort(rng.uniform(0, 300, n)), rng.integers(1, 90, n),
        rng.integers(1, 30, n), names,
    )  # fmt: skip
    found = told(folder, "tenants", "--traffic", crowd)
    table = requests_of(folder / "tenants")
    tenants = found["by_tenant"]
    assert len(tenants) == 21 and tenants[-1]["tenant"] == "(others)"
    counts = [row["requests"] for row in tenants[:-1]]
    assert counts == sorted(counts, reverse=True)
    assert sum(row["requests"] for row in tenants) == close(len(table) / RUNS)
    assert sum(row["output_tokens"] for row in tenants) == close(table["output_tokens"].sum() / RUNS)
    known = {name: names.count(name) for name in set(names) - {""}}
    shown = {row["tenant"] for row in tenants[:-1]}
    assert min(known[name] for name in shown) >= max(known[name] for name in set(known) - shown)
    replay = told(folder, "tenants", "--traffic", crowd, "--replay", "--runs", 1)
    table, of = requests_of(folder / "tenants"), pl.Series(names)
    for row in replay["by_tenant"][:-1]:
        mine = table.filter(of == row["tenant"])
        assert row["requests"] == len(mine) and row["output_tokens"] == mine["output_tokens"].sum()
        assert row["p50(ttft)"] == close(float(mine["ttft_s"].quantile(0.5, "linear")), 1e-8)  # type: ignore[arg-type]


def test_few_tenants_have_no_others(folder: Path, tmp_path: Path) -> None:
    n = 100
    crowd = write_rows(tmp_path, "two.parquet", np.arange(n), np.ones(n), np.ones(n), ["a", "b"] * 50)
    found = told(folder, "two", "--traffic", crowd, "--replay", "--runs", 1)
    assert [row["tenant"] for row in found["by_tenant"]] == ["a", "b"]
    assert told(folder, "two")["by_tenant"] == []


# ---- alerts ----


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--runs", 1), "one-run"),
        (("--region", "ap-northeast-1"), "inferred-price"),
        (("--set", "fleet.instance=g6e.4xlarge"), "other-instance"),
        (
            (
                "--set",
                "engine.max_num_seqs=64",
                "--set",
                "step.prefill_per_token=4 ms",
                "--set",
                "engine.beyond=extrapolate",
            ),
            "unmeasured-batch",
        ),
        (("--set", "engine.max_context=120"), "rejected"),
    ],
)
def test_what_may_overturn_a_verdict_is_said(folder: Path, words: tuple[object, ...], code: str) -> None:
    quiet = {alert["code"] for alert in told(folder, "alert")["alerts"]}
    codes = {alert["code"]: alert for alert in told(folder, "alert", *words)["alerts"]}
    assert code in codes and code not in quiet
    assert codes[code]["text"] and codes[code]["do"]


def test_a_result_reads_back_from_its_file(folder: Path, plain: dict[str, Any]) -> None:
    assert json.loads((folder / "plain" / "results.json").read_text("utf-8")) == plain
    assert PROMPTS.splitlines()[0] in (folder / "hand.toml").read_text()

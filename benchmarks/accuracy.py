"""How far predictions are from what was measured: `python -m benchmarks.accuracy [FAMILY…] [--data DIR] [--docs FILE]`.

Calibrates every pair of `benchmarks.pairs` on its one half and predicts the other; prints a table of errors with the
coverage of the 90 % intervals, and with `--docs` writes it into the page.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.pairs import FAMILIES, Pair
from fleetcast.sim.calibration.fit import Fit, calibrate
from fleetcast.sim.calibration.predict import Prediction, predict

DATA = Path(__file__).parents[2] / "shared" / "data"
COLUMNS = {"E2E": ("e2e", ("mean", "p50")), "ITL/TPOT": ("tpot", ("mean", "p50")), "TTFT": ("ttft", ("mean",)),
           "tok/s": ("output_tps", ("mean",)), "TTFT p99": ("ttft", ("p99",))}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judged:
    """One pair, fitted and predicted."""

    pair: Pair
    fit: Fit
    found: tuple[Prediction, ...]
    seconds: float

    def errors(self, column: str, beyond: bool) -> list[float]:
        """Return the errors of a column, of points *beyond* saturation or below it."""
        metric, statistics = COLUMNS[column]
        alike = {"tpot": ("tpot", "itl"), "output_tps": ("output_tps", "request_rate")}.get(metric, (metric,))
        picked: dict[tuple[str, str], Prediction] = {}
        for row in self.found:
            if row.metric in alike and row.statistic in statistics and (row.bench in self.pair.beyond) == beyond:
                picked.setdefault((row.bench, row.metric), row)
        return [row.error for row in picked.values()]

    def covered(self, beyond: bool) -> list[bool]:
        """Return for every figure of a side of saturation whether its interval held it."""
        return [row.covered for row in self.found if (row.bench in self.pair.beyond) == beyond]


def judge(pair: Pair) -> Judged:
    """Calibrate a pair and predict its held-out points."""
    began = time.perf_counter()
    fit = calibrate(pair.calibrate, pair.limits, pair.unknown, active_share=pair.active_share)
    found = tuple(row for bench in pair.predict for row in predict(fit, bench))
    return Judged(pair, fit, found, time.perf_counter() - began)


def median(errors: Sequence[float]) -> float:
    """Return the median absolute error."""
    return float(np.nanmedian(np.abs(errors))) if len(errors) else float("nan")


def cell(errors: Sequence[float]) -> str:
    """Return a median absolute error in percent, or a dash."""
    return f"{100 * median(errors):.1f} %" if len(errors) else "–"


def table(judged: Sequence[Judged], beyond: bool) -> list[str]:
    """Return the Markdown table of one side of saturation."""
    lines = ["| system | " + " | ".join(COLUMNS) + " | in 90 % interval |", "|---|" + "---|" * (len(COLUMNS) + 1)]
    for one in judged:
        held = one.covered(beyond)
        if held:
            cells = [cell(one.errors(column, beyond)) for column in COLUMNS]
            lines.append(f"| {one.pair.name} | " + " | ".join(cells) + f" | {sum(held)} of {len(held)} |")
    easy = [one for one in judged if not one.pair.hard]
    held = [value for one in easy for value in one.covered(beyond)]
    if held:
        cells = [cell([e for one in easy for e in one.errors(column, beyond)]) for column in COLUMNS]
        lines.append(
            "| **all** | " + " | ".join(f"**{c}**" for c in cells) + f" | **{np.mean(held):.0%}** of {len(held)} |"
        )
    return lines


def self_consistency(judged: Sequence[Judged]) -> list[str]:
    """Return the Markdown table of how the fits give back what they were fitted to."""
    lines = ["| system | E2E | ITL/TPOT | TTFT | tok/s | worst E2E or tok/s |", "|---|---|---|---|---|---|"]
    for one in judged:

        def of(metric: Sequence[str], rows: Judged = one) -> list[float]:
            return [r.error for r in rows.fit.residuals if r.metric in metric and r.statistic in ("mean", "p50")]

        cells = [cell(of(m)) for m in (("e2e",), ("tpot", "itl"), ("ttft",), ("output_tps", "request_rate"))]
        worst = max(map(abs, of(("e2e", "output_tps", "request_rate"))), default=float("nan"))
        lines.append(f"| {one.pair.name} | " + " | ".join(cells) + f" | {100 * worst:.1f} % |")
    return lines


def details(judged: Sequence[Judged]) -> list[str]:
    """Return every prediction beside its measurement, and what was found of each system."""
    lines = []
    for one in judged:
        engine = one.fit.shape.limits
        lines.append(f"{one.pair.name}: {engine.policy}, prompts at once {engine.max_prompts_per_iteration}, "
                     f"{engine.max_num_seqs} seats, {one.seconds:.1f} s")  # fmt: skip
        speed = one.fit.shape.model(one.fit.x)
        pairs = ", ".join(f"{b}: {1e3 * t:.2f}" for b, t in zip(speed.batch, speed.time_s, strict=True))
        per_token = f"{1e6 * speed.prefill_per_token_s:.1f} us/token"
        lines.append(f"    step ms {pairs}; prompt {1e3 * speed.prefill_fixed_s:.2f} ms + {per_token}, "
                     f"mixing {speed.mixing:.3g}, overhead {1e3 * speed.request_overhead_s:.2f} ms, "
                     f"noise {speed.noise_cv:.3f}, "
                     f"kv {1e9 * speed.kv_per_token_s:.3f} ns")  # fmt: skip
        lines.append("    left over: " + ", ".join(f"{k} {v:.1%}" for k, v in one.fit.discrepancy.items()))
        for r in one.fit.residuals:
            lines.append(
                f"    fit  {r.bench:22} {r.metric:>10} {r.statistic:4} {r.measured:10.4f} "
                f"{100 * r.error:+7.1f} %  z {r.z:+.1f}"
            )
        for p in one.found:
            mark = " " if p.covered else "x"
            side = "beyond" if p.bench in one.pair.beyond else ""
            lines.append(f"    pred {p.bench:22} {p.metric:>10} {p.statistic:4} {p.measured:10.4f} "
                         f"{100 * p.error:+7.1f} %  [{p.low:.4f}, {p.high:.4f}] {mark} {side}")  # fmt: skip
    return lines


def report(judged: Sequence[Judged]) -> str:
    """Return the tables as Markdown."""
    parts = ["### Below saturation: held-out points, median absolute error", "", *table(judged, False), "",
             "### Beyond saturation", "", *table(judged, True), "",
             "### Given back: the points that were fitted", "", *self_consistency(judged), ""]  # fmt: skip
    return "\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("family", nargs="*", help="mock gb10 g7 sweeps tgi rtx splitwise t4 (default: all)")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--docs", type=Path, help="Markdown page whose marked part is replaced")
    parser.add_argument("--details", action="store_true", help="print every figure too")
    chosen = parser.parse_args(argv)
    judged = []
    for family in FAMILIES:
        if chosen.family and family.__name__ not in chosen.family:
            continue
        try:
            pairs = list(family(chosen.data))
        except FileNotFoundError as error:
            print(f"{family.__name__}: skipped, no {error.filename}", file=sys.stderr)
            continue
        for pair in pairs:
            judged.append(judge(pair))
            print(f"{pair.name}: {judged[-1].seconds:.1f} s", file=sys.stderr)
    if chosen.details:
        print("\n".join(details(judged)))
    text = report(judged)
    print(text)
    if chosen.docs:
        page = chosen.docs.read_text(encoding="utf-8")
        head, _, rest = page.partition("<!-- tables -->")
        _, _, tail = rest.partition("<!-- /tables -->")
        chosen.docs.write_text(f"{head}<!-- tables -->\n\n{text}\n<!-- /tables -->{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

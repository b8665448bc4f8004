"""How good is an arrival model? `python -m benchmarks.traffic [TRACE] [--load 0.7] [--days 200]`.

The p99 wait, in service times, through one deterministic server whose load is that of the recorded trace: recorded,
from its counts per minute, as random days from the fitted model, and as a constant-rate Poisson process of the same
mean. Also how long it takes to read ten million rows of Parquet and to make a day of ten million requests.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fleetcast.traffic import laws
from fleetcast.traffic.arrivals import minute_counts, spread
from fleetcast.traffic.fit import fit_model
from fleetcast.traffic.model import make_days
from fleetcast.traffic.read import read_trace
from fleetcast.traffic.trace import Trace

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "traces" / "AzureLLMInferenceTrace_conv.csv"


def waits(arrival_s: NDArray[np.float64], service_s: float) -> NDArray[np.float64]:
    """Waits of a first-come, first-served queue with one server and equal services (Lindley's recursion, unrolled)."""
    free = arrival_s - service_s * np.arange(len(arrival_s))
    longest: NDArray[np.float64] = np.maximum.accumulate(free) - free
    return longest


def p99(arrival_s: NDArray[np.float64], service_s: float) -> float:
    return float(np.quantile(waits(arrival_s, service_s), 0.99)) / service_s


def compare(trace: Trace, load: float, days: int) -> dict[str, tuple[float, float, float]]:
    """Median p99 wait in service times and its 90 % interval over random days, by arrival model."""
    span = trace.span_s
    rate = len(trace) / span
    service = load / rate
    recorded = p99(trace.arrival_s, service)
    begin, counts = minute_counts(trace)
    found = {"recorded": (recorded, recorded, recorded)}

    def over(name: str, draw: list[float]) -> None:
        low, middle, high = np.quantile(draw, (0.05, 0.5, 0.95)).tolist()
        found[name] = (middle, low, high)

    rngs = [np.random.default_rng([7, day]) for day in range(days)]
    over("counts per minute, uniform inside", [p99(spread(counts, begin, rng), service) for rng in rngs])
    model = fit_model(trace, day_cv=0.0)
    for burst in ("fitted", "low", "high"):
        over(
            f"fitted model, burst {burst}",
            [p99(make_days(model, 1, day, burst=burst).arrival_s, service) for day in range(days)],
        )
    varied = fit_model(trace, day_cv=0.3)
    over(
        "fitted model, days differ by cv 0.3",
        [p99(make_days(varied, 1, day).arrival_s, service) for day in range(days)],
    )
    cv = float(np.diff(trace.arrival_s).std() / np.diff(trace.arrival_s).mean())
    over(f"gamma renewal of its cv, {cv:.2f}", [p99(laws.gamma(rate, span, rng, cv=cv), service) for rng in rngs])
    over("Poisson of constant rate", [p99(laws.poisson(rate, span, rng), service) for rng in rngs])
    return found


def speed(rows: int = 10_000_000) -> list[str]:
    """Read and make ten million requests; peak memory is the process's."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    said = []
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ten-million.parquet"
        table = {
            "arrival_s": np.sort(rng.uniform(0, 86_400, rows)),
            "input_tokens": rng.integers(1, 4_000, rows, np.int32),
            "output_tokens": rng.integers(1, 800, rows, np.int32),
        }
        parquet.write_table(pa.table(table), path)
        del table
        begun = time.perf_counter()
        trace = read_trace(path)
        said.append(f"read {len(trace):,} rows of Parquet in {time.perf_counter() - begun:.2f} s")
    model = fit_model(trace, day_cv=0.3)
    del trace
    begun = time.perf_counter()
    day = make_days(model, 1, 1)
    said.append(f"made a day of {len(day):,} requests in {time.perf_counter() - begun:.2f} s")
    said.append(
        f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, with both in one process"
    )
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--days", type=int, default=200)
    parser.add_argument("--no-speed", action="store_true")
    given = parser.parse_args()
    if given.trace.exists():
        trace = read_trace(given.trace)
        print(f"{given.trace.name}: {len(trace):,} requests; one deterministic server at {100 * given.load:g} % load")
        print(f"{'':<40}{'p99 wait':>10}   90 % of {given.days} days   holds the recorded")
        found = compare(trace, given.load, given.days)
        recorded = found["recorded"][0]
        for name, (middle, low, high) in found.items():
            band = (
                ""
                if name == "recorded"
                else f"{low:8.1f} – {high:<8.1f}   {'yes' if low <= recorded <= high else 'no'}"
            )
            print(f"{name:<40}{middle:10.1f}   {band}")
    else:
        print(f"{given.trace} is not here: give a trace")
    if not given.no_speed:
        print("\n".join(speed()))


if __name__ == "__main__":
    main()

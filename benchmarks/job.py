"""How long the whole command takes: `python -m benchmarks.job`.

Start-up is the same command on a trace of two requests; the kernel's compiled form is on disk before anything is timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fleetcast.traffic.template import make_day
from fleetcast.traffic.trace import make_trace
from fleetcast.traffic.write import write_trace

COMMAND = [sys.executable, "-c", "from fleetcast.cli import main; main()"]
REQUESTS, RATE = 1_000_000, 35.0


def timed(arguments: list[str], repetitions: int = 1) -> tuple[float, float]:
    """Return the best wall-clock seconds and the peak memory (bytes) of a command."""
    best, peak = float("inf"), 0.0
    for _ in range(repetitions):
        start = time.perf_counter()
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        assert code in (0, 1, 3), f"exit {code}"
        best = min(best, time.perf_counter() - start)
        peak = max(peak, usage.ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0))
    return best, peak


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many, weekday = (folder / f"{file}.parquet" for file in ("few", "many", "weekday"))
        write_trace(make_trace([0.0, 1.0], [10, 20], [5, 6]), few)
        gaps = np.random.default_rng(0).exponential(1 / RATE, REQUESTS)
        write_trace(make_trace(np.cumsum(gaps), np.full(REQUESTS, 512), np.full(REQUESTS, 128)), many)
        write_trace(make_day("weekday", 10.0, 0), weekday)
        one = ["--profile", "g6e-int8", "--replay", "--replicas", "1", "--runs", "1", "--format", "json"]
        timed([*one, "--traffic", str(few)])
        rows = [
            ("simulate --help", ["--help"], 3),
            ("start-up: a trace of 2 requests", [*one, "--traffic", str(few)], 3),
            ("replay of 1 M requests, one run, JSON", [*one, "--traffic", str(many)], 3),
            (
                "main job: 0.9 M requests, 20 days, files",
                ["--profile", "g6e-int8", "--traffic", str(weekday), "--workers", "2", "--out", str(folder / "out")],
                1,
            ),
        ]
        print(f"{'command':44} {'seconds':>8} {'peak GB':>8}")
        for text, arguments, repetitions in rows:
            seconds, peak = timed(arguments, repetitions)
            print(f"{text:44} {seconds:>8.2f} {peak / 1e9:>8.2f}")


if __name__ == "__main__":
    main()

"""Small worlds for the tests: hand-written profiles, made traces, and the command as a user types it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from fleetcast.cli import main
from fleetcast.traffic.trace import Labels, make_trace
from fleetcast.traffic.write import write_trace

PROFILE = """\
schema = 1
name = "hand"
[model]
name = "nobody's model"
{model}
[hardware]
instance = "g6e.xlarge"
[engine]
policy = "chunked"
max_num_seqs = {seats}
{engine}
[step]
batch = {batch}
time = {time}
{step}
"""
HOURLY = 1.861  # US dollars for a g6e.xlarge in us-east-1, on demand

PROMPTS = 'prefill_fixed = "2 ms"\nprefill_per_token = "100 us"\nrequest_overhead = "5 ms"'


class Said(NamedTuple):
    """What a command left: its exit code, stdout and stderr."""

    code: object
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """The result it printed as JSON."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def simulate(*words: object, report: bool = False) -> Said:
    """Type `simulate` and *words*, in this process; drawing the report takes seconds and is left out unless asked."""
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["simulate", *map(str, words)]))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if not report:
            stack.enter_context(mock.patch("fleetcast.reports.html.write_report", _write_nothing))
        try:
            main()
        except SystemExit as end:
            code = end.code
    return Said(code, out.getvalue(), err.getvalue())


def _write_nothing(result: dict[str, Any], path: Path) -> None:
    path.write_text("a report\n", encoding="utf-8")


def write_profile(
    folder: Path,
    name: str = "hand.toml",
    *,
    seats: int = 4,
    batch: Iterable[int] = (1, 4),
    time: Iterable[str] = ("10 ms", "16 ms"),
    step: str = PROMPTS,
    engine: str = "",
    model: str = "",
) -> Path:
    """Write a profile whose step time is 10, 12, 14 and 16 ms at 1 to 4 sequences, unless told otherwise."""
    path = folder / name
    values = {"seats": seats, "batch": list(batch), "time": json.dumps(list(time))}
    path.write_text(PROFILE.format(**values, step=step, engine=engine, model=model), encoding="utf-8")
    return path


def write_rows(
    folder: Path, name: str, arrival: ArrayLike, prompt: ArrayLike, output: ArrayLike, tenant: Iterable[str] = ()
) -> Path:
    """Write a native trace of these columns."""
    codes = {tenant: at for at, tenant in enumerate(dict.fromkeys(each for each in tenant if each))}
    column = Labels(np.array([codes.get(each, -1) for each in tenant], np.int32), tuple(codes))
    labels = {"tenant": column} if codes else {}
    write_trace(make_trace(arrival, prompt, output, labels=labels), folder / name)
    return folder / name


def write_crowd(
    folder: Path, name: str = "crowd.parquet", *, n: int = 1_200, span: float = 240.0, seed: int = 0
) -> Path:
    """Write a trace of *n* requests spread evenly at random over *span* seconds: 50 tokens in, 20 out on average."""
    rng = np.random.default_rng(seed)
    return write_rows(
        folder, name, np.sort(rng.uniform(0, span, n)), rng.integers(1, 100, n), rng.integers(1, 40, n)
    )  # fmt: skip


def requests_of(folder: Path) -> pl.DataFrame:
    """Read the requests that a simulation wrote."""
    return pl.read_parquet(folder / "requests.parquet")


def timeline_of(folder: Path) -> pl.DataFrame:
    """Read the timeline that a simulation wrote."""
    return pl.read_parquet(folder / "timeline.parquet")

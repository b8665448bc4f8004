"""SageMaker Data Capture: a tree of JSON-line files, one line a call, with request and reply inside.

The stamp is when the call was answered for (`inferenceTime`, whole seconds in the published examples). Tokens are the
reply's `usage`, also where it came as a stream of events (the last usage counts); a reply without usage has no length,
and `max_tokens` is an upper bound, not an output, so it is not taken for one. Texts never leave this module. A capture
holds `InitialSamplingPercentage` of the calls, which only the endpoint's configuration says: give it as the sampling.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError
from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import decode, json_lines, loads

COLUMNS = ("eventMetadata.inferenceTime", "usage.prompt_tokens", "usage.completion_tokens")
MOST_FILES = 100_000
_OUT = "captureData.endpointOutput"
_INPUTS = r'"(?:prompt_tokens|input_tokens|inputTokens|prompt_token_count|inputTokenCount)"\s*:\s*(\d{1,12})\b'
_OUTPUTS = (
    r'"(?:completion_tokens|output_tokens|outputTokens|generated_tokens|generation_token_count|outputTokenCount)"'
    r"\s*:\s*(\d{1,12})\b"
)


def recognises(first: Any) -> bool:
    """Tell whether a line's object is a captured call."""
    return isinstance(first, dict) and "captureData" in first and "eventMetadata" in first


def _text(data: Any) -> Any:
    """Return bytes as text; what is not UTF-8 (a cut reply, an image) has its broken characters replaced."""
    import polars as pl

    try:
        return data.cast(pl.String)
    except pl.exceptions.PolarsError:
        texts = [None if raw is None else raw.decode(errors="replace") for raw in data.to_list()]
        return pl.Series(data.name, texts, dtype=pl.String)


def files_of(folder: Path) -> list[Path]:
    """Return the .jsonl files below *folder* by path, which is by hour."""
    found = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(at) / name for name in sorted(names) if name.endswith((".jsonl", ".json"))]
        if len(found) > MOST_FILES:
            raise DataError(f"{folder} holds more than {MOST_FILES:,} files", fix="give one day's folder")
    return found


def recognises_folder(files: list[Path]) -> bool:
    """Tell whether the first file of a folder holds captured calls."""
    for file in files[:20]:
        with file.open("rb") as opened:
            line = opened.readline(1 << 24)
        if line.strip():
            return recognises(loads(line))
    return False


def read(path: Path, files: list[Path], options: Options) -> Reading:
    """Return the calls captured in *files*."""
    import polars as pl

    fields = ("eventMetadata.inferenceTime", f"{_OUT}.data", f"{_OUT}.encoding", "eventMetadata.eventId")
    frames, unread = [], 0
    for file in files:
        if not file.stat().st_size:
            continue
        lines = json_lines(file)
        if not len(lines):
            continue
        table, bad = decode(lines, fields)
        unread += bad
        data, encoding = table[f"{_OUT}.data"], table[f"{_OUT}.encoding"].str.to_uppercase()
        coded = (encoding == "BASE64").fill_null(False)
        plain = _text(data.str.decode("base64", strict=False))
        body = pl.select(pl.when(coded).then(plain).otherwise(data)).to_series()
        frames.append(
            pl.DataFrame(
                {
                    "stamp": table["eventMetadata.inferenceTime"],
                    "input": body.str.extract_all(_INPUTS).list.last().str.extract(_INPUTS, 1),
                    "output": body.str.extract_all(_OUTPUTS).list.last().str.extract(_OUTPUTS, 1),
                }
            )
        )
    if not frames:
        raise DataError(f"{path}: no requests", why=f"its {len(files):,} files are empty")
    whole = pl.concat(frames)
    stamp = whole["stamp"]
    clock = read_clock(stamp, where=str(path), name=COLUMNS[0], unit=None, zone=options.time_zone)
    absent = int((whole["input"].is_null() | whole["output"].is_null()).sum())
    remarks = []
    if absent:
        remarks.append(
            f"{absent:,} replies hold no usage (streamed without it?); --lengths chat keeps them with drawn ones"
            if options.lengths is None
            else f"{absent:,} replies hold no usage"
        )
    if options.sampling == 1:
        remarks.append(
            "a capture may be a sample: if the endpoint's InitialSamplingPercentage is not 100, say --sampling"
        )
    rows = Rows(clock, stamp, whole["input"], whole["output"], COLUMNS, remarks=tuple(remarks), unread=unread)
    return requests(rows, where=str(path), name=path.name, format="SageMaker Data Capture", options=options)

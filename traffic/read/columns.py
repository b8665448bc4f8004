"""What the columns of a trace are called elsewhere, and what to say when one is missing."""

from __future__ import annotations

from pathlib import Path

from fleetcast.errors import DataError, nearest
from fleetcast.traffic.trace import COLUMNS

ALIASES = {
    "arrival_s": (
        "arrival", "arrived_at", "arrival_time", "arrival_timestamp", "arrival_ms", "arrival_time_us",
        "arrival_time_ns", "timestamp", "timestamp_start_unix_ms", "ts", "t", "time", "date", "start_time",
        "request_start_ns", "created", "created_at", "inferenceTime",
    ),
    "input_tokens": (
        "ContextTokens", "input_length", "input_toks", "input", "in", "isl", "Request tokens",
        "prompt_tokens", "prompt_length", "prompt_len", "prompt_size", "num_prefill_tokens",
        "PromptTokenCount", "inputTokenCount", "usage.prompt_tokens", "usage.input_tokens",
        "gen_ai.usage.input_tokens", "server_input_tokens",
    ),
    "output_tokens": (
        "GeneratedTokens", "output_length", "output_toks", "output", "out", "osl", "Response tokens",
        "completion_tokens", "token_size", "num_decode_tokens", "GeneratedTokenCount", "outputTokenCount",
        "usage.completion_tokens", "usage.output_tokens", "gen_ai.usage.output_tokens",
    ),
}  # fmt: skip
"""What other tools call the columns (collected from their formats, November 2026)."""


def missing_columns(
    path: Path, absent: list[str], names: list[str], wanted: tuple[str, str, str] = COLUMNS
) -> DataError:
    """Return the error of a file that has the columns *names* but not *absent*, some of those *wanted*."""
    shown = ", ".join(f"`{name}`" for name in names[:20]) + (" …" if len(names) > 20 else "")
    others = [name for name in names if name not in wanted]
    fixes = []
    for column in absent:
        place = wanted.index(column)
        alias = _alias(column, COLUMNS[place], others)
        if alias:
            unit = " and let it count seconds from the trace's start" if column == "arrival_s" else ""
            fixes.append(f"it has `{alias}`; rename it to `{column}`{unit}")
    return DataError(
        f"{path} has no column {' and none named '.join(f'`{column}`' for column in absent)}",
        why=f"its columns are {shown}" if names else "it has no columns at all",
        fix="\n  ".join(fixes) or f"a trace has the columns {', '.join(f'`{column}`' for column in wanted)}",
    )


def _alias(column: str, native: str, names: list[str]) -> str | None:
    """Return which of *names* another tool would call *column*, or which looks most like it."""
    there = {_plain(name): name for name in reversed(names)}
    known = (_plain(alias) for alias in (column, native, *ALIASES[native]))
    found = next((there[alias] for alias in known if alias in there), None)
    return found or next(iter(nearest(column, names, count=1)), None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

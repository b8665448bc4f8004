"""What the columns of a trace are called elsewhere, and what to say when one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fleetcast.errors import DataError, ScenarioError, nearest, suggest
from fleetcast.traffic.trace import COLUMNS

ALIASES = {
    "arrival_s": (
        "arrival", "arrived_at", "arrival_time", "arrival_timestamp", "arrival_ms", "arrival_time_us",
        "arrival_time_ns", "timestamp", "timestamp_start_unix_ms", "timestamp_ms", "ts", "t", "time", "date",
        "start_time", "request_start_ns", "created", "created_at", "inferenceTime", "eventMetadata.inferenceTime",
    ),
    "input_tokens": (
        "server_input_tokens", "ContextTokens", "input_length", "input_toks", "input", "in", "isl", "Request tokens",
        "prompt_tokens", "prompt_length", "prompt_len", "prompt_size", "num_prefill_tokens",
        "PromptTokenCount", "inputTokenCount", "usage.prompt_tokens", "usage.input_tokens",
        "gen_ai.usage.input_tokens",
    ),
    "output_tokens": (
        "GeneratedTokens", "output_length", "output_toks", "output", "out", "osl", "Response tokens",
        "completion_tokens", "token_size", "num_decode_tokens", "GeneratedTokenCount", "outputTokenCount",
        "usage.completion_tokens", "usage.output_tokens", "gen_ai.usage.output_tokens",
    ),
}  # fmt: skip
"""What other tools call the columns (collected from their formats, November 2026); the first found is taken."""

LABEL_ALIASES = {
    "session": ("session_id", "conversation_id", "chat_id", "poor_man_session_id"),
    "turn": ("round_index",),
    "model": (),
    "tenant": ("tenant_id", "client_id", "application_id", "user", "user_id"),
    "region": (),
    "prefix": ("prefix_group",),
}
UPPER_BOUNDS = ("max_tokens", "max_completion_tokens", "max_new_tokens")
"""What a request allows, not what it got: an upper bound of the output, taken only by name."""

ENDS = ("end_timestamp", "end_time", "finished_at")
_ROLES = {"arrival": "arrival_s", "input": "input_tokens", "output": "output_tokens"}


def find_columns(names: Iterable[str], given: Mapping[str, str], where: str) -> dict[str, str]:
    """Return which of *names* plays which role (native column names); *given* roles come first."""
    there = list(names)
    plain = {_plain(name): name for name in reversed(there)}
    found: dict[str, str] = {}
    for role, name in given.items():
        if name not in there:
            raise ScenarioError(f"{where} has no column `{name}` (asked for as {role})", fix=suggest(name, there))
        found[_ROLES.get(role, role)] = name
    for role, aliases in {**ALIASES, **LABEL_ALIASES}.items():
        if role in found:
            continue
        known = (plain.get(_plain(alias)) for alias in (role, *aliases))
        free = next((name for name in known if name is not None and name not in found.values()), None)
        if free is not None:
            found[role] = free
    return found


def missing_columns(
    path: Path | str, absent: list[str], names: list[str], wanted: tuple[str, str, str] = COLUMNS
) -> DataError:
    """Return the error of a file that has the columns *names* but not *absent*, some of those *wanted*."""
    shown = ", ".join(f"`{name}`" for name in names[:20]) + (" …" if len(names) > 20 else "")
    others = [name for name in names if name not in wanted]
    fixes = []
    for column in absent:
        place = wanted.index(column)
        alias = _alias(column, COLUMNS[place], others)
        role = ("arrival", "input", "output")[place]
        if alias:
            fixes.append(f"it has `{alias}`; say so with --columns {role}={alias}, or rename it to `{column}`")
        bound = next((name for name in names if _plain(name) in map(_plain, UPPER_BOUNDS)), None)
        if column == wanted[2] and bound and not alias:
            fixes.append(
                f"it has `{bound}`, an upper bound; take it with --columns output={bound}, or give --lengths chat"
            )
        end = next((name for name in names if _plain(name) in map(_plain, ENDS)), None)
        if column == wanted[0] and end and not alias:
            fixes.append(f"it has `{end}`, when a request ended; if nothing better is there: --columns arrival={end}")
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
    close = nearest(
        column, [name for name in names if _plain(name) not in map(_plain, (*UPPER_BOUNDS, *ENDS))], count=1
    )
    return found or next(iter(close), None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

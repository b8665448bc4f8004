"""One run of a benchmark as its tool tells it, before it becomes a point of a profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What all runs of one profile must share. A file that does not say is compatible with any value.
SETTINGS = (
    "model", "precision", "instance", "accelerator", "accelerators", "engine", "engine_version", "policy",
    "max_num_seqs", "max_batched_tokens", "max_context", "tensor_parallel", "pipeline_parallel", "chunked_prefill",
    "prefix_caching", "kv_cache", "hardware", "gpu", "system", "config",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What one run says, in seconds and tokens.

    `load` has the keys of a Point that say how load was applied, empty where the file does not tell; `figures` has its
    other keys; `about` the settings (`SETTINGS`) and whatever else `--where` may pick by, as text.
    """

    path: str
    sha256: str
    tool: str
    version: str | None = None
    load: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    date: str | None = None
    command: str | None = None
    place: str = ""  # within the file, such as ":3" for a line
    pooled: bool = False  # averages over repeats, which may be at hand themselves

    @property
    def where(self) -> str:
        """The file, and the place in it where it holds several runs."""
        return f"{self.path}{self.place}"


def closed(concurrency: int) -> dict[str, Any]:
    """Return the load of users who send their next request when the answer has come."""
    return {"kind": "closed", "concurrency": concurrency}


def open_loop(rate: float, law: str | None, burstiness: float | None = None, cap: int | None = None) -> dict[str, Any]:
    """Return the load of requests at *rate* a second, whatever the answers do; *cap* of them at most in flight."""
    found: dict[str, Any] = {"kind": "open", "rate": rate, "arrivals": law}
    if law == "gamma" and burstiness is not None:
        found["burstiness"] = burstiness
    if cap is not None:
        found["max_concurrency"] = cap
    return found


def some(**figures: Any) -> dict[str, Any]:
    """Return those of *figures* that are known: not None and not empty."""
    return {key: value for key, value in figures.items() if value is not None and value != {}}


def settings(**about: object) -> dict[str, str]:
    """Return those of *about* that are known, as text that may be kept."""
    from fleetcast.profiles.ingest.values import clean

    found = {key: clean(value, 200) for key, value in about.items()}
    return {key: value for key, value in found.items() if value}


def shares(completed: int | None, failed: int | None) -> dict[str, Any]:
    """Return `requests` and `errors` of a run from what completed and what failed."""
    if completed is None:
        return {}
    found: dict[str, Any] = {"requests": completed} if completed else {}
    if failed is not None and completed + failed > 0:
        found["errors"] = failed / (completed + failed)
    return found

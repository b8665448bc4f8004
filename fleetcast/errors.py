"""The errors a user can cause, and how each is worded.

FleetcastError
 +-- ScenarioError   what was asked for: a flag, a scenario key, a threshold, a name
 +-- DataError       what a file says: traffic, a profile, a price sheet
 +-- NotMeasured     the profile does not cover what the run would need

Each says what is wrong (with the value and the place), why, and what to type instead. The command line prints
it and exits with 2; anything else that escapes is a bug of ours (101).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FleetcastError(Exception):
    """A mistake that the user can mend, worded as `what`, an optional reason `why` and a remedy `fix`."""

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)  # *what* alone, so that a worker process can hand the error back: pickle calls cls(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return "\n  ".join(line for line in (self.what, self.why, self.fix) if line)


class ScenarioError(FleetcastError):
    """What was asked for cannot be simulated: a flag, a scenario key, a threshold or a name is wrong."""


class DataError(FleetcastError):
    """A file does not hold what it should: traffic, a profile, a price sheet or a result."""


class NotMeasured(FleetcastError):
    """The run needs a speed that the profile does not cover."""


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Return up to *count* of *names* that look most like *name*, best first."""
    pool = sorted(set(names))
    lower = {n.lower(): n for n in reversed(pool)}
    found = difflib.get_close_matches(name.lower(), lower, n=count, cutoff=0.5)
    return [lower[f] for f in found]


def suggest(name: str, names: Iterable[str]) -> str:
    """Return `closest: a, b`, or the list of all *names* when none looks like *name*."""
    pool = sorted(set(names))
    close = nearest(name, pool)
    return f"closest: {', '.join(close)}" if close else f"known: {', '.join(pool) or 'none'}"

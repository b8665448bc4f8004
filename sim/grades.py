"""Service-level grades: what a latency is usually called, from excellent to poor.

Orientation for reports, no verdict: production service levels are set by thresholds. The ladder is a
convention of the field, not a measurement; times per output token are those of interactive reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fleetcast.sim.estimate import BEYOND, Estimate
from fleetcast.units import Seconds

Grade = Literal["excellent", "good", "acceptable", "poor"]

# Below the first: excellent; up to the second: good; up to the third: acceptable; above it: poor.
LADDER: Mapping[str, tuple[Seconds, Seconds, Seconds]] = {
    "p50(ttft)": (0.2, 0.5, 2.0),
    "p99(ttft)": (0.5, 1.0, 5.0),
    "mean(tpot)": (0.03, 0.06, 0.1),
}


def grade(metric: str, value: Seconds) -> Grade:
    """Grade one latency; *metric* is a key of `LADDER`."""
    excellent, good, acceptable = LADDER[metric]
    if value < excellent:
        return "excellent"
    if value <= good:
        return "good"
    return "acceptable" if value <= acceptable else "poor"


def grades(metrics: Mapping[str, Estimate]) -> dict[str, Grade]:
    """Grade every graded metric that has a value; one that lies among unfinished requests is poor."""
    found: dict[str, Grade] = {}
    for name in LADDER:
        estimate = metrics.get(name)
        if estimate is not None and estimate.value is not None:
            found[name] = grade(name, estimate.value)
        elif estimate is not None and estimate.note == BEYOND:
            found[name] = "poor"
    return found

"""fleetcast: play production LLM traffic against measured serving profiles, many times over.

This is the front door. Its names live in `fleetcast.profiles`, `fleetcast.traffic` and `fleetcast.sim` and
are loaded when they are first asked for (PEP 562): importing fleetcast costs nothing, `simulate --help` stays
quick, and the packages inside may import `fleetcast.units` and `fleetcast.errors` without a circle.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "Estimate",
    "FleetcastError",
    "NotMeasured",
    "Scenario",
    "ScenarioError",
    "Trace",
    "__version__",
    "load_profile",
    "make_case",
    "make_day",
    "make_trace",
    "read_trace",
    "simulate",
    "write_trace",
]

if TYPE_CHECKING:
    from fleetcast.errors import DataError, FleetcastError, NotMeasured, ScenarioError
    from fleetcast.profiles.read import load_profile
    from fleetcast.sim.estimate import Estimate
    from fleetcast.sim.result import simulate
    from fleetcast.sim.scenario import Scenario
    from fleetcast.sim.study import make_case
    from fleetcast.traffic.read import read_trace
    from fleetcast.traffic.template import make_day
    from fleetcast.traffic.trace import Trace, make_trace
    from fleetcast.traffic.write import write_trace
else:  # hidden from type checkers, which would otherwise believe in any name
    _HOMES = {
        "DataError": "fleetcast.errors",
        "Estimate": "fleetcast.sim.estimate",
        "FleetcastError": "fleetcast.errors",
        "NotMeasured": "fleetcast.errors",
        "Scenario": "fleetcast.sim.scenario",
        "ScenarioError": "fleetcast.errors",
        "Trace": "fleetcast.traffic.trace",
        "load_profile": "fleetcast.profiles.read",
        "make_case": "fleetcast.sim.study",
        "make_day": "fleetcast.traffic.template",
        "make_trace": "fleetcast.traffic.trace",
        "read_trace": "fleetcast.traffic.read",
        "simulate": "fleetcast.sim.result",
        "write_trace": "fleetcast.traffic.write",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # the next look-up finds it without asking here
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

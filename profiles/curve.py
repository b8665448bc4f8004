"""How long an iteration takes at each batch size, and how sure that is.

A StepModel is one certain answer, the eight numbers the simulator plays. A Curve is what a profile supports: equal to
one step model where it was written by hand, a range between a fast and a slow one where it was modelled. Nothing is
extrapolated unless asked for by name: a batch above the last entry was not measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import NotMeasured
from fleetcast.profiles.calibrated import Draws
from fleetcast.profiles.check import remarks
from fleetcast.profiles.modelled import Modelled, model
from fleetcast.profiles.profile import Assumption, Profile, Step

__all__ = ["Assumption", "Curve", "StepModel", "curve_of"]


@dataclass(frozen=True, eq=False)
class StepModel:
    """Seconds of an iteration: D = step[n] + K·kv for n decodes with K context tokens, Q for the prompt tokens.

    The step is piecewise linear in the batch, constant below its first entry. Q = `prefill_fixed_s` + tokens ×
    `prefill_per_token_s`, and both together last (D^m + Q^m)^(1/m) with m = `mixing` (`math.inf`: the longer one).
    """

    batch: NDArray[np.int64]
    time_s: NDArray[np.float64]
    prefill_fixed_s: float = 0.0
    prefill_per_token_s: float = 0.0
    kv_per_token_s: float = 0.0
    mixing: float = 1.0
    request_overhead_s: float = 0.0
    noise_cv: float = 0.0

    def at(self, batch: int) -> float:
        """Return the step at *batch* sequences, 0 without any; NotMeasured above the last entry."""
        if batch <= 0:
            return 0.0
        if batch > self.batch[-1]:
            raise self._above(batch)
        return float(np.interp(batch, self.batch, self.time_s))

    def table(self, max_batch: int, extrapolate: bool = False) -> NDArray[np.float64]:
        """Return the steps of batches 0 to *max_batch*, shape (max_batch + 1,), [0] = 0.

        Above the last entry they are NaN, or with *extrapolate* on the line through the last two entries.
        """
        sizes = np.arange(max_batch + 1)
        steps = np.interp(sizes, self.batch, self.time_s)
        steps[0] = 0.0
        beyond = sizes > self.batch[-1]
        if extrapolate and beyond.any():
            if len(self.batch) < 2:
                raise self._above(max_batch)
            slope = (self.time_s[-1] - self.time_s[-2]) / float(self.batch[-1] - self.batch[-2])
            steps[beyond] = self.time_s[-1] + slope * (sizes[beyond] - self.batch[-1])
        elif beyond.any():
            steps[beyond] = math.nan
        return steps

    def _above(self, batch: int) -> NotMeasured:
        last = int(self.batch[-1])
        why = f"the step model ends at batch {last}"
        return NotMeasured(
            f"batch {batch} was not measured", why=why, fix=f"cap max_num_seqs at {last}, or measure further"
        )


@dataclass(frozen=True, eq=False)
class Curve:
    """A step model with its uncertainty: `fast` and `slow` enclose it, `central` lies midway, `notes` say why.

    `basis` tells of each entry whether it was "measured", "modelled" or "stated" (written by hand); `prefill_basis` the
    same of the prompt's cost.
    """

    central: StepModel
    fast: StepModel
    slow: StepModel
    basis: tuple[str, ...]
    prefill_basis: str
    notes: tuple[Assumption, ...]
    uncertain: bool
    draws: tuple[StepModel, ...] = ()  # of a calibration, from the fastest to the slowest
    span: tuple[int, int] | None = None  # batches between which its points tell

    def draw(self, u_step: float, u_prefill: float) -> StepModel:
        """Return the step model at *u_step* and *u_prefill* in [0, 1] of the way from fast to slow, linear in seconds.

        One draw serves a whole run: the truth is one curve that is not known, not one that changes.
        """
        if not self.uncertain:
            return self.central
        if self.draws:  # joint: what was found of the step goes with what was found of the prompt
            return self.draws[min(int(u_step * len(self.draws)), len(self.draws) - 1)]
        fast, slow = self.fast, self.slow
        steps = fast.time_s + u_step * (slow.time_s - fast.time_s)
        return StepModel(
            batch=fast.batch,
            time_s=np.maximum.accumulate(np.clip(steps, fast.time_s, slow.time_s)),
            prefill_fixed_s=_between(fast.prefill_fixed_s, slow.prefill_fixed_s, u_prefill),
            prefill_per_token_s=_between(fast.prefill_per_token_s, slow.prefill_per_token_s, u_prefill),
            kv_per_token_s=_between(fast.kv_per_token_s, slow.kv_per_token_s, u_step),
            mixing=fast.mixing,
            request_overhead_s=_between(fast.request_overhead_s, slow.request_overhead_s, u_prefill),
            noise_cv=fast.noise_cv,
        )

    def basis_of(self, batch: int) -> str:
        """Return "measured", "stated", "modelled" or, above the last entry, "unmeasured".

        A step written by hand is stated all along its range; a measured curve is measured at its entries alone, a
        calibrated one between the batches that its points kept.
        """
        entries = self.central.batch
        if batch > entries[-1]:
            return "unmeasured"
        if self.span is not None:
            return "measured" if self.span[0] <= batch <= self.span[1] else "modelled"
        if "stated" in self.basis:
            return "stated" if batch >= entries[0] else "modelled"
        at = int(np.searchsorted(entries, batch))
        return self.basis[at] if entries[at] == batch else "modelled"


def _between(a: float, b: float, share: float) -> float:
    return a + share * (b - a)


def curve_of(profile: Profile) -> Curve:
    """Return the curve of a profile: its [step] if it has one, else modelled from its points and the hardware.

    NotMeasured where a profile of points alone says too little of the model or the hardware.
    """
    if profile.step is not None and profile.step.draws is not None:
        return _calibrated(profile, profile.step, profile.step.draws)
    if profile.step is not None:
        return _stated(profile.step, remarks(profile))
    return _modelled(model(profile), remarks(profile))


def _calibrated(profile: Profile, step: Step, draws: Draws) -> Curve:
    """Return the curve of a calibration: its draws, and at every batch the middle 90 % of them as fast and slow."""
    central = _as_written(step)
    models = [
        replace(
            central,
            time_s=np.maximum.accumulate(central.time_s * np.array(draws.time[i])),
            prefill_fixed_s=central.prefill_fixed_s * draws.prefill_fixed[i],
            prefill_per_token_s=central.prefill_per_token_s * draws.prefill_per_token[i],
            kv_per_token_s=central.kv_per_token_s * draws.kv_per_token[i],
            request_overhead_s=central.request_overhead_s * draws.request_overhead[i],
            mixing=1.0 / draws.inverse_mixing[i] if draws.inverse_mixing[i] > 0 else math.inf,
            noise_cv=draws.noise_cv[i],
        )
        for i in range(len(draws.time))
    ]
    models.sort(key=lambda one: float(np.mean(one.time_s / central.time_s)))
    fast, slow = (_quantile(models, central, level) for level in (0.05, 0.95))
    span = step.measured or (int(central.batch[0]), int(central.batch[-1]))
    basis = tuple("measured" if span[0] <= batch <= span[1] else "modelled" for batch in central.batch)
    notes = [Assumption("the step model was calibrated", text, "a replay of the points") for text in step.found]
    if step.points is not None and step.points != profile.points_hash:
        text = "the points are not those the step was calibrated on"
        notes.append(Assumption(text, "calibrate again", "the hash of the points in [step]"))
    notes += remarks(profile)
    return Curve(central, fast, slow, basis, "measured", tuple(notes), True, tuple(models), span)


def _quantile(models: list[StepModel], central: StepModel, level: float) -> StepModel:
    def of(values: list[float]) -> float:
        return float(np.quantile(values, level))

    times = np.quantile([one.time_s for one in models], level, axis=0)
    return replace(
        central,
        time_s=np.maximum.accumulate(times),
        prefill_fixed_s=of([one.prefill_fixed_s for one in models]),
        prefill_per_token_s=of([one.prefill_per_token_s for one in models]),
        kv_per_token_s=of([one.kv_per_token_s for one in models]),
        request_overhead_s=of([one.request_overhead_s for one in models]),
    )


def _stated(step: Step, notes: tuple[Assumption, ...]) -> Curve:
    central = _as_written(step)
    return Curve(central, central, central, ("stated",) * len(step.batch), "stated", notes, uncertain=False)


def _as_written(step: Step) -> StepModel:
    return StepModel(
        batch=np.array(step.batch, dtype=np.int64),
        time_s=np.array(step.time, dtype=np.float64),
        prefill_fixed_s=step.prefill_fixed,
        prefill_per_token_s=step.prefill_per_token,
        kv_per_token_s=step.kv_per_token,
        mixing=step.mixing,
        request_overhead_s=step.request_overhead,
        noise_cv=step.noise_cv,
    )


def _modelled(found: Modelled, notes: tuple[Assumption, ...]) -> Curve:
    fast = StepModel(
        found.batch,
        found.fast,
        prefill_per_token_s=found.prefill_fast,
        request_overhead_s=found.overhead_fast,
    )
    slow = StepModel(
        found.batch,
        found.slow,
        prefill_per_token_s=found.prefill_slow,
        request_overhead_s=found.overhead_slow,
    )
    central = StepModel(
        found.batch,
        (found.fast + found.slow) / 2.0,
        prefill_per_token_s=(found.prefill_fast + found.prefill_slow) / 2.0,
        request_overhead_s=(found.overhead_fast + found.overhead_slow) / 2.0,
    )
    return Curve(central, fast, slow, found.basis, "modelled", found.notes + notes, uncertain=True)

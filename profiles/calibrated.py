"""What a calibration leaves in a profile: how far each figure is off, and the step models that would do as well."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from fleetcast.profiles.fields import Mistake, NotNegative, Table, Text


class Residual(Table):
    """A figure that a calibration was fitted to: the model's value over the measured one minus 1, and in sigma."""

    point: Text  # as "closed 16"
    figure: Text  # as "p50(ttft)"
    error: Annotated[float, Field(strict=True, allow_inf_nan=False)]
    deviations: Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Draws(Table):
    """Step models that the points allow as well: each number as a factor of the step's own, one per draw.

    `time` has a factor for every entry of the step; `inverse_mixing` is 1/mixing itself (0 = "max").
    """

    time: tuple[tuple[NotNegative, ...], ...]
    prefill_fixed: tuple[NotNegative, ...]
    prefill_per_token: tuple[NotNegative, ...]
    kv_per_token: tuple[NotNegative, ...]
    request_overhead: tuple[NotNegative, ...]
    inverse_mixing: tuple[NotNegative, ...]
    noise_cv: tuple[NotNegative, ...]

    @model_validator(mode="after")
    def _are_as_many(self) -> Self:
        for name in type(self).model_fields:
            if len(getattr(self, name)) != len(self.time) or not self.time:
                raise Mistake(name, getattr(self, name), f"there are {len(self.time)} draws of time")
        return self

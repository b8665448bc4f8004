"""Which instances hold a model: weights, KV cache, and the largest concurrency, at each tensor parallelism.

weights = parameters × bytes; KV bytes a token = 2 × layers × KV heads × head dimension × bytes; capacity in tokens =
(accelerators × usable memory × 0.9 − weights × 1.05) / KV bytes a token (see `fleetcast.profiles.memory`). Left out:
pipeline parallelism, KV heads that do not divide by the parallelism, quantised KV caches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fleetcast.errors import NotMeasured
from fleetcast.profiles import hardware
from fleetcast.profiles.memory import BLOCK_TOKENS, OVERHEAD, UTILISATION, bytes_and_format, kv_bytes_per_token
from fleetcast.profiles.profile import Profile

PARALLEL = (1, 2, 4, 8, 16)
NVLINK = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300")
"""Families with NVLink or NVSwitch between their accelerators; the g families have PCIe alone."""


@dataclass(frozen=True)
class Fit:
    """One instance at one tensor parallelism; tokens and sequences are None where the model does not fit.

    `replicas` of this parallelism go on one instance. `sequences` is how many contexts of `context` tokens its KV cache
    holds at once.
    """

    instance: str
    accelerator: str
    parallelism: int
    replicas: int
    weights_bytes: float
    kv_blocks: int | None
    kv_tokens: int | None
    sequences: int | None
    warnings: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the weights and at least one context fit."""
        return bool(self.sequences)


def fits(profile: Profile, context: int | None = None, instance: str | None = None) -> tuple[Fit, ...]:
    """Return how a profile's model fits every instance (or one), least parallelism first.

    *context* is the tokens of one sequence; left out: the model's longest. NotMeasured where the profile does not give
    parameters, precision or the KV bytes of a token.
    """
    model = profile.model
    per_token = kv_bytes_per_token(profile)
    if model.parameters is None or model.precision is None or per_token is None:
        missing = [
            name
            for name, known in (
                ("model.parameters", model.parameters),
                ("model.precision", model.precision),
                ("model.kv_bytes_per_token (or layers, kv_heads and head_dim)", per_token),
            )
            if known is None
        ]
        raise NotMeasured(
            f"{profile.name}: the memory it needs is not known", why=f"missing: {', '.join(missing)}", fix="add them"
        )
    context = context or model.max_context
    if context is None:
        raise NotMeasured(f"{profile.name}: model.max_context is missing", fix="write for example --context 4096")
    size, native = bytes_and_format(model.precision)
    names = [hardware.instance(instance).name] if instance else sorted(hardware.instances())
    found = []
    for name in names:
        there = hardware.instances()[name]
        warning = _not_native(there, model.precision, native)
        for parallelism in PARALLEL:
            if parallelism <= max(1, math.floor(there.count)):
                found.append(_fit(there, parallelism, model.parameters * size, per_token, context, warning))
    return tuple(found)


def _fit(
    there: hardware.Instance, parallelism: int, weights: float, per_token: float, context: int, native: str
) -> Fit:
    share = min(1.0, float(there.count))  # of one accelerator, on the sizes that have a part of one
    room = parallelism * share * there.memory_bytes_usable * UTILISATION - weights * (1 + OVERHEAD)
    blocks = math.floor(room / (BLOCK_TOKENS * per_token))
    warnings = [native] if native else []
    if parallelism > 2 and there.family not in NVLINK:
        warnings.append(f"tensor parallelism {parallelism} over PCIe")
    holds = blocks >= math.ceil(context / BLOCK_TOKENS)
    return Fit(
        there.name,
        there.accelerator,
        parallelism,
        max(1, math.floor(there.count) // parallelism),
        weights,
        blocks if holds else None,
        blocks * BLOCK_TOKENS if holds else None,
        blocks // math.ceil(context / BLOCK_TOKENS) if holds else None,
        tuple(warnings),
    )


def _not_native(there: hardware.Instance, precision: str, computes: str) -> str:
    if not hardware.knows_accelerator(there.accelerator):
        return ""
    formats = hardware.accelerator(there.accelerator).formats
    if not formats or computes in formats or (computes == "fp16" and "bf16" in formats):
        return ""
    return f"{precision} is not native to {there.accelerator}: weight-only kernels run it"

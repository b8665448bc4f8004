"""How much fits: the bytes of the weights, and how many KV blocks are left beside them.

weights = parameters × bytes of the precision; KV bytes a token = 2 × layers × KV heads × head dimension × bytes. Left
out: fragmentation, pipeline stages of unequal size, adapters, a KV cache in fewer bits than the file states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fleetcast.errors import DataError, NotMeasured, suggest
from fleetcast.profiles import hardware
from fleetcast.profiles.profile import Profile

BLOCK_TOKENS = 16
UTILISATION = 0.9  # share of the usable memory an engine takes (vLLM's default)
OVERHEAD = 0.05  # of the weights: activations and framework; 5 to 10 % is usual
KV_BYTES = 2.0  # FP16 or BF16 keys and values, unless model.kv_bytes_per_token says otherwise

# Precision -> (bytes a parameter, format it computes in). INT8 is weight-only in LLM engines unless it says W8A8: it
# saves memory and computes in FP16. So do the 4-bit integer formats.
PRECISIONS: Mapping[str, tuple[float, str]] = {
    "fp32": (4.0, "fp32"),
    "fp16": (2.0, "fp16"),
    "bf16": (2.0, "fp16"),
    "fp8": (1.0, "fp8"),
    "int8": (1.0, "fp16"),
    "w8a16": (1.0, "fp16"),
    "w8a8": (1.0, "int8"),
    "int4": (0.5, "fp16"),
    "w4a16": (0.5, "fp16"),
    "fp4": (0.5, "fp4"),
    "nvfp4": (0.5, "fp4"),
    "mxfp4": (0.5, "fp4"),
}


def bytes_and_format(precision: str) -> tuple[float, str]:
    """Return the bytes a parameter takes and the format it computes in; NotMeasured for an unknown precision."""
    key = precision.strip().lower().replace("_", "-")
    if key not in PRECISIONS:
        why = f"neither its bytes nor its arithmetic are known; {suggest(key, PRECISIONS)}"
        raise NotMeasured(f'model.precision = "{precision}"', why=why, fix="write one of them, or a [step] of your own")
    return PRECISIONS[key]


def kv_bytes_per_token(profile: Profile) -> float | None:
    """Return the KV bytes of one token of context, stated or from the model's shape; None where neither is known."""
    model = profile.model
    if model.kv_bytes_per_token is not None:
        return model.kv_bytes_per_token or None
    if model.layers is None or model.kv_heads is None or model.head_dim is None:
        return None
    return 2.0 * model.layers * model.kv_heads * model.head_dim * KV_BYTES


def kv_blocks_of(profile: Profile) -> int | None:
    """Return the KV blocks of 16 tokens: stated, else derived; None (unlimited) where too little is known.

    Derived: ⌊(count × usable memory × 0.9 − weights × 1.05) / (16 × KV bytes a token)⌋, from the usual way to size a
    server: utilisation times usable memory, less the weights and 5 % of them for activations and framework. DataError
    where nothing is left.
    """
    if profile.engine.kv_blocks is not None:
        return profile.engine.kv_blocks
    per_token, model = kv_bytes_per_token(profile), profile.model
    instance = hardware.instances().get(profile.hardware.instance)
    if per_token is None or model.parameters is None or model.precision is None or instance is None:
        return None
    weights = model.parameters * bytes_and_format(model.precision)[0]
    room = profile.hardware.count * instance.memory_bytes_usable * UTILISATION
    blocks = math.floor((room - weights * (1 + OVERHEAD)) / (BLOCK_TOKENS * per_token))
    if blocks < 1:
        why = f"{weights / 1e9:.3g} GB of weights and {OVERHEAD * 100:g} % leave nothing of {room / 1e9:.3g} GB for KV"
        fix = "check model.parameters, model.precision and hardware.count, or state engine.kv_blocks"
        raise DataError(f"{profile.name}: the model does not fit {profile.hardware.instance}", why=why, fix=fix)
    return blocks

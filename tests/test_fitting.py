"""Memory: by hand, from the formulas of the field."""

from __future__ import annotations

import math

import pytest

from fleetcast.errors import NotMeasured
from fleetcast.profiles.fitting import fits
from fleetcast.profiles.hardware import instance
from fleetcast.profiles.profile import Profile
from fleetcast.profiles.read import load_profile, parse_profile


def llama_70b(precision: str = "bf16") -> Profile:
    text = f"""
schema = 1
name = "llama"
[model]
name = "Llama-3.3-70B"
parameters = 70.6e9
precision = "{precision}"
layers = 80
kv_heads = 8
head_dim = 128
max_context = 4096
[hardware]
instance = "p4de.24xlarge"
[engine]
policy = "chunked"
max_num_seqs = 64
[step]
batch = [1]
time = ["20 ms"]
"""
    return parse_profile(text.encode(), "llama.toml")


def test_a_70b_model_by_hand() -> None:
    rows = {(row.instance, row.parallelism): row for row in fits(llama_70b())}
    per_token = 2 * 80 * 8 * 128 * 2
    assert per_token == 327_680  # 1.342 GB for 4,096 tokens
    usable = instance("p5.48xlarge").memory_bytes_usable
    room = 4 * usable * 0.9 - 70.6e9 * 2 * 1.05
    row = rows["p5.48xlarge", 4]
    assert row.kv_blocks == math.floor(room / (16 * per_token))
    assert row.sequences == row.kv_blocks // 256 and row.replicas == 2 and row.warnings == ()
    assert not rows["p5.48xlarge", 1].fits  # 148 GB of weights on 80 GB
    assert not rows["g6e.xlarge", 1].fits


def test_warnings() -> None:
    rows = {(row.instance, row.parallelism): row for row in fits(llama_70b("fp8"))}
    assert "fp8 is not native to A10G" in rows["g5.48xlarge", 8].warnings[0]
    assert "over PCIe" in rows["g5.48xlarge", 8].warnings[1]
    assert rows["g6e.48xlarge", 2].warnings == ()


def test_one_instance_longer_context_holds_fewer() -> None:
    profile = load_profile("g6e-int8").profile
    (short,) = fits(profile, context=512, instance="g6e.xlarge")
    (full,) = fits(profile, instance="g6e.xlarge")
    assert short.kv_tokens == full.kv_tokens
    assert short.sequences is not None and full.sequences is not None and short.sequences // full.sequences == 2


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotMeasured, match="kv_bytes_per_token"):
        fits(load_profile("g7-fp8-qwen3-coder-30b").profile)

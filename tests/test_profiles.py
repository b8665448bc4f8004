"""Profiles: the file's rules, the curve that is modelled from few points, and the facts of the built-in library."""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.errors import DataError, NotMeasured, ScenarioError
from fleetcast.profiles import hardware
from fleetcast.profiles.check import remarks, tokens_meanwhile
from fleetcast.profiles.curve import Curve, StepModel, curve_of
from fleetcast.profiles.memory import kv_blocks_of
from fleetcast.profiles.profile import Profile
from fleetcast.profiles.read import LIBRARY, library, load_profile, parse_profile

BY_HAND = """\
schema = 1
name = "by-hand"
[model]
name = "a model"
[hardware]
instance = "g6e.xlarge"
[engine]
policy = "chunked"
max_num_seqs = 64
[step]
batch = [1, 2, 64]
time = ["6 ms", "6.5 ms", "10 ms"]
"""
STEP = BY_HAND[BY_HAND.index("[step]") :]
POINT = '[[point]]\nkind = "static"\nbatch = 64\noutput_tps = 6314\n'


def read(text: str) -> Profile:
    return parse_profile(text.encode(), "a.toml")


def refuse(old: str, new: str, text: str = BY_HAND) -> str:
    assert old in text
    with pytest.raises(DataError) as caught:
        read(text.replace(old, new))
    return str(caught.value)


# --- the file ---------------------------------------------------------------------------------------------------


def test_quantities_become_seconds_and_defaults_are_those_of_the_format() -> None:
    extra = (
        'prefill_fixed = "2 ms"\nprefill_per_token = "20 us"\nkv_per_token = "3 ns"\nmixing = "max"\nnoise_cv = 0.03\n'
    )
    profile = read(BY_HAND + extra)
    assert profile.step is not None
    assert profile.step.time == (0.006, 0.0065, 0.01)
    assert profile.step.prefill_fixed == 0.002
    assert profile.step.prefill_per_token == pytest.approx(20e-6, rel=1e-12)
    assert profile.step.kv_per_token == pytest.approx(3e-9, rel=1e-12)
    assert profile.step.mixing == math.inf
    assert profile.step.noise_cv == 0.03
    plain = read(BY_HAND).step
    assert plain is not None
    assert (plain.prefill_fixed, plain.kv_per_token, plain.mixing, plain.noise_cv) == (0.0, 0.0, 1.0, 0.0)
    assert read(BY_HAND).engine.max_batched_tokens == 2_048
    assert read(BY_HAND).engine.kv_blocks is None


def test_an_instance_fills_in_its_accelerator_and_count() -> None:
    used = read(BY_HAND.replace("g6e.xlarge", "g5.12xlarge")).hardware
    assert (used.accelerator, used.count) == ("A10G", 4)
    assert read(BY_HAND.replace("g6e.xlarge", "my-own-box")).hardware.accelerator is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_num_seqs", "max_num_seq", ["a.toml", "engine.max_num_seq = 64", "closest: max_num_seqs"]),
        ("[step]", "[stepp]", ["stepp", "closest: step"]),
        ('"6 ms"', "6", ["step.time[0] = 6", "needs a unit", '"6 ms"']),
        ('"6 ms"', '"6 m"', ['"m" is not a unit']),
        ('"6 ms"', '"7 ms"', ["step.time[1]", "less than 0.007 at batch 1"]),
        ('"6 ms"', '"-6 ms"', ["step.time[0]", "negative"]),
        ("[1, 2, 64]", "[1, 1, 64]", ["step.batch[1] = 1", "must rise"]),
        ("[1, 2, 64]", "[0, 2, 64]", ["step.batch[0] = 0", "≥ 1"]),
        ("[1, 2, 64]", "[1, 2.5, 64]", ["step.batch[1] = 2.5", "whole number"]),
        ("[1, 2, 64]", "[1, 64]", ["step.time", "2 batch sizes need as many times"]),
        ("[1, 2, 64]", "[]", ["step.batch", "empty"]),
        ("[1, 2, 64]", "64", ["step.batch = 64", "list"]),
        ("[step]", "[step]\nmixing = 0.5", ["step.mixing = 0.5", '"max"']),
        ("[step]", "[step]\nnoise_cv = 1.5", ["step.noise_cv = 1.5", "≤ 1"]),
        ("[step]", "[step]\nnoise_cv = -0.1", ["step.noise_cv = -0.1", "≥ 0"]),
        ("[step]", "[step]\nprefill_per_token = 20", ["step.prefill_per_token = 20", "needs a unit"]),
        ("max_num_seqs = 64", "max_num_seqs = 0", ["engine.max_num_seqs = 0", "≥ 1"]),
        ("max_num_seqs = 64", "max_num_seqs = true", ["engine.max_num_seqs = true", "whole number"]),
        ("max_num_seqs = 64", "max_num_seqs = 64\nkv_blocks = 0", ["engine.kv_blocks = 0", "≥ 1"]),
        ("max_num_seqs = 64", "max_num_seqs = 64\nmax_batched_tokens = 0", ["engine.max_batched_tokens", "≥ 1"]),
        ("max_num_seqs = 64", "", ["engine.max_num_seqs is missing", "[engine]"]),
        ('policy = "chunked"', "", ["engine.policy is missing"]),
        ('"chunked"', '"chunkd"', ["engine.policy", "prefill-first", 'write "chunked"']),
        ('instance = "g6e.xlarge"', "", ["hardware.instance is missing"]),
        ('name = "a model"', "", ["model.name is missing"]),
        ('name = "by-hand"', "", ["name is missing"]),
        ("schema = 1", "", ["schema is missing", "schema = 1"]),
        ("schema = 1", "schema = 2", ["schema = 2", "reads schema 1"]),
        ("g6e.xlarge", "ml.g6e.xlarge", ["SageMaker", 'write "g6e.xlarge"']),
        ("[engine]", "count = 2\n[engine]", ["hardware.count = 2", "1 × L40S"]),
        ("[engine]", 'count = "1"\n[engine]', ['hardware.count = "1"', "finite number"]),
        ("[engine]", "count = 0\n[engine]", ["hardware.count = 0", "> 0"]),
        ("[engine]", 'accelerator = "A10G"\n[engine]', ["hardware.accelerator", "1 × L40S"]),
        ('name = "a model"', 'name = "a model"\nparameters = inf', ["model.parameters = inf", "finite"]),
        (STEP, "", ["needs a [step] table or at least one [[point]]"]),
        ("[engine]\n", "[engine\n", ["a.toml:7:"]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_remedy(old: str, new: str, words: list[str]) -> None:
    message = refuse(old, new)
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ('kind = "closed"\noutput_tps = 3', ["point[0].concurrency is missing", "add concurrency = 16"]),
        ('kind = "open"\noutput_tps = 3', ["point[0].rate is missing"]),
        ('kind = "static"\noutput_tps = 3', ["point[0].batch is missing"]),
        ('kind = "static"\nbatch = 4\nconcurrency = 4\noutput_tps = 3', ["point[0].concurrency", '"closed"']),
        ('kind = "closed"\nconcurrency = 4\nlatency = "1 s"', ["point[0].latency", '"static"']),
        ('kind = "closed"\nconcurrency = 4', ["no measurement"]),
        ('kind = "opne"\nrate = 1', ["point[0].kind", 'write "open"']),
        ('kind = "closed"\nconcurrency = 4\nttft = "1 s"', ["point[0].ttft", '{ mean = "1 s" }']),
        ('kind = "closed"\nconcurrency = 4\nttft = { p50 = 3 }', ["point[0].ttft.p50 = 3", "needs a unit"]),
        ('kind = "closed"\nconcurrency = 4\nttft = { p98 = "3 s" }', ["point[0].ttft.p98", "closest: p99"]),
        ('kind = "closed"\nconcurrency = 4\nttft = { p50 = "2 s", p99 = "1 s" }', ["point[0].ttft.p99", "p50"]),
        ('kind = "closed"\nconcurrency = 4\noutput_tps = 0', ["point[0].output_tps = 0", "> 0"]),
        ('kind = "closed"\nconcurrency = 4\noutput_tps = 3\nerrors = "120 %"', ["point[0].errors"]),
        ('kind = "static"\nbatch = 4\nlatency = 3', ["point[0].latency = 3", '"3 ms"']),
        ('kind = "open"\nrate = "1.2"\noutput_tps = 3', ["point[0].rate", '"1.2 /s"']),
        (
            'kind = "open"\nrate = 1\noutput_tps = 3\ninput_tokens = { tokens = [1, 2], count = [1] }',
            ["point[0].input_tokens.count", "2 values"],
        ),
    ],
)
def test_a_wrong_point_is_named(point: str, words: list[str]) -> None:
    message = refuse(STEP, f"[[point]]\n{point}\n")
    assert [word for word in words if word not in message] == []


def test_points_of_every_kind_are_read() -> None:
    points = """[[point]]
kind = "closed"
concurrency = 16
requests = 2044
input_tokens = 128
output_tokens = { mean = 100, cv = 0.5 }
output_tps = 900
ttft = { mean = "118.9 ms", p50 = "100 ms", "p99.9" = "1 s" }
errors = "0.5 %"
[[point]]
kind = "open"
rate = "72 /min"
arrivals = "poisson"
input_tokens = { tokens = [64, 128], count = [3, 1] }
itl = { mean = "9 ms" }
[[point]]
kind = "static"
batch = 64
latency = "1459 ms"
note = "until the batch is done"
"""
    closed, opened, static = read(BY_HAND.replace(STEP, points)).point
    assert closed.ttft is not None and closed.input_tokens is not None and opened.input_tokens is not None
    assert (closed.ttft.mean, closed.ttft.p99_9, closed.errors) == (pytest.approx(0.1189), 1.0, 0.005)
    assert closed.input_tokens.spread_is_assumed
    assert closed.output_tokens is not None and not closed.output_tokens.spread_is_assumed
    assert opened.rate == pytest.approx(1.2)
    assert opened.input_tokens.average == 80.0  # (3·64 + 128) / 4
    assert (static.load, static.latency) == (64.0, 1.459)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.83, 0.97])
def test_a_file_that_was_cut_short_is_refused(share: float) -> None:
    cut = BY_HAND[: int(len(BY_HAND) * share)]
    with pytest.raises(DataError, match=r"^a\.toml"):
        read(cut)


def test_a_cut_value_names_the_line() -> None:
    with pytest.raises(DataError, match=r"^a\.toml:12: .*\n.*is it complete"):
        read(BY_HAND[:-8])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"name = '\xff'\n", "line 1"),
        (b"\x00\x01\x02", "a.toml:1"),
        (b"[" * 4000, "a.toml:1"),
        (b"a = " + b"[" * 9000, "a.toml:1"),
        (b"a = 1\na = 2\n", "a.toml:2: Cannot overwrite"),
    ],
)
def test_what_is_not_a_text_file_is_refused(raw: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        parse_profile(raw, "a.toml")


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    raw = "\ufeff".encode() + BY_HAND.replace("\n", "\r\n").encode()
    assert parse_profile(raw, "a.toml") == read(BY_HAND)


# --- names and paths ----------------------------------------------------------------------------------------------


def test_a_path_is_read_relative_to_its_root(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(BY_HAND)
    loaded = load_profile("mine.toml", root=tmp_path)
    assert (loaded.profile.name, loaded.path, loaded.origin) == ("by-hand", "mine.toml", "file")
    assert loaded.sha256 == hashlib.sha256(BY_HAND.encode()).hexdigest()
    assert load_profile(str(tmp_path / "mine.toml")).sha256 == loaded.sha256


def test_a_built_in_name_is_not_shadowed_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "g6e-int8").write_text(BY_HAND)
    assert load_profile("g6e-int8", root=tmp_path).origin == "built-in"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("g6e-int4", ScenarioError, "g6e-int8"),
        ("nothing-like-it-at-all", ScenarioError, "simulate profile list"),
        ("./g6e-int8.toml", ScenarioError, "g6e-int8"),
        ("mime.toml", ScenarioError, "mine.toml"),
        ("mine", ScenarioError, "by its path: mine.toml"),
        ("sub/", DataError, "directory"),
        ("", ScenarioError, "no profile"),
    ],
)
def test_an_unknown_profile_says_what_there_is(name: str, error: type[Exception], words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(BY_HAND)
    (tmp_path / "sub").mkdir()
    with pytest.raises(error) as caught:
        load_profile(name, root=tmp_path)
    assert words in str(caught.value)


# --- the library --------------------------------------------------------------------------------------------------

NEOSAPIENCE = {  # instance, tok/s at a static batch of 64, seconds until it is done, tokens that makes (Little)
    "g5-int8": ("g5.xlarge", 4_314, 2.386, 160.8),
    "g6e-int8": ("g6e.xlarge", 6_314, 1.459, 143.9),
    "g6e-fp8": ("g6e.xlarge", 8_720, 0.932, 127.0),
    "g7e-int8": ("g7e.2xlarge", 11_046, 0.742, 128.0),
    "g7e-fp8": ("g7e.2xlarge", 11_656, 0.703, 128.0),
}
QWEN = {  # instance, accelerators, tok/s of 4 users, mean and p99 seconds of a response
    "g7-fp8-qwen3-coder-30b": ("g7.12xlarge", 2, 391.3, 1.3158, 1.5011),
    "g5-fp8-qwen3-coder-30b": ("g5.12xlarge", 4, 346.3, 1.475, 1.881),
    "g6-fp8-qwen3-coder-30b": ("g6.12xlarge", 4, 243.3, 2.109, 3.314),
}


def test_the_library_is_what_its_folder_holds() -> None:
    assert library() == tuple(sorted({*NEOSAPIENCE, *QWEN}))
    assert library() == tuple(sorted(file.stem for file in LIBRARY.iterdir()))


@pytest.mark.parametrize("name", [*NEOSAPIENCE, *QWEN])
def test_every_built_in_profile_cites_its_figures(name: str) -> None:
    loaded = load_profile(name)
    profile = loaded.profile
    assert (loaded.origin, profile.name) == ("built-in", name)
    assert profile.source is not None and profile.source.title
    assert profile.step is None
    assert all(point.note for point in profile.point)
    assert profile.hardware.instance in hardware.instances()
    curve = curve_of(profile)
    assert curve.uncertain
    assert all(note.text and note.value and note.source for note in curve.notes)
    assert int(curve.central.batch[-1]) == profile.engine.max_num_seqs


@pytest.mark.parametrize("name", NEOSAPIENCE)
def test_a_first_token_latency_that_is_a_completion_time_is_kept_as_one(name: str) -> None:
    instance, tps, latency, tokens = NEOSAPIENCE[name]
    profile = load_profile(name).profile
    (point,) = profile.point
    assert (profile.hardware.instance, point.kind, point.batch) == (instance, "static", 64)
    assert (point.output_tps, point.latency, point.ttft) == (tps, latency, None)
    found = tokens_meanwhile(point, latency)
    assert found is not None and found == pytest.approx(tokens, abs=0.07)
    assert any(f"{found:.1f} tokens" == note.value for note in remarks(profile))
    assert point.note is not None and "whole batch" in point.note


@pytest.mark.parametrize("name", QWEN)
def test_the_closed_loop_points_are_the_published_ones(name: str) -> None:
    instance, count, tps, mean, p99 = QWEN[name]
    profile = load_profile(name).profile
    (point,) = profile.point
    assert (profile.hardware.instance, profile.hardware.count) == (instance, count)
    assert (point.kind, point.concurrency, point.requests, point.output_tps) == ("closed", 4, 100, tps)
    assert point.e2e is not None and point.note is not None
    assert (point.e2e.mean, point.e2e.p99) == (pytest.approx(mean), pytest.approx(p99))
    # Little's law: users / response time × output tokens is the throughput, within the rounding of the source.
    assert 4 / mean * 128 == pytest.approx(tps, rel=0.01)
    assert point.note.startswith("Derived") == (not name.startswith("g7"))


# --- the curve ----------------------------------------------------------------------------------------------------


def test_a_step_by_hand_is_certain_and_linear_between_its_entries() -> None:
    curve = curve_of(read(BY_HAND))
    assert not curve.uncertain
    assert curve.central is curve.fast is curve.slow is curve.draw(0.3, 0.9)
    assert curve.central.at(1) == 0.006
    assert curve.central.at(33) == pytest.approx(0.0065 + (0.01 - 0.0065) * 31 / 62, rel=1e-12)
    assert [curve.basis_of(b) for b in (1, 33, 64, 65)] == ["stated", "stated", "stated", "unmeasured"]
    with pytest.raises(NotMeasured, match="batch 65 was not measured"):
        curve.central.at(65)


def test_below_the_first_entry_the_step_is_constant_and_not_stated() -> None:
    curve = curve_of(read(BY_HAND.replace("[1, 2, 64]", "[8, 16, 64]")))
    assert curve.central.at(1) == curve.central.at(8) == 0.006
    assert curve.basis_of(1) == "modelled"


def test_the_table_ends_or_goes_on_in_a_line() -> None:
    step = curve_of(read(BY_HAND)).central
    table = step.table(126)
    assert table.shape == (127,)
    assert table[0] == 0.0
    assert np.isnan(table[65:]).all() and np.isfinite(table[:65]).all()
    # 62 more sequences add what the last 62 did: 3.5 ms.
    assert step.table(126, extrapolate=True)[126] == pytest.approx(0.0135, rel=1e-12)
    with pytest.raises(NotMeasured):
        StepModel(np.array([4]), np.array([0.01])).table(5, extrapolate=True)


@st.composite
def step_models(draw: st.DrawFn) -> StepModel:
    size = draw(st.integers(1, 8))
    batch = sorted(draw(st.sets(st.integers(1, 300), min_size=size, max_size=size)))
    times = sorted(draw(st.lists(st.floats(1e-5, 1.0), min_size=size, max_size=size)))
    return StepModel(np.array(batch, dtype=np.int64), np.array(times))


@settings(deadline=None, max_examples=100, derandomize=True)
@given(step_models(), st.integers(0, 400))
def test_a_table_never_falls_and_equals_at(step: StepModel, max_batch: int) -> None:
    table = step.table(max_batch)
    last = min(max_batch, int(step.batch[-1]))
    assert (np.diff(table[: last + 1]) >= 0).all()
    assert table[: last + 1].tolist() == [step.at(batch) for batch in range(last + 1)]
    assert np.isnan(table[last + 1 :]).all()


def test_the_step_of_g6e_int8_by_hand() -> None:
    curve = curve_of(load_profile("g6e-int8").profile)
    assert curve.central.batch.tolist() == [1, 64]
    assert curve.basis == ("modelled", "measured")
    for step in (curve.fast, curve.central, curve.slow):
        assert step.at(64) == pytest.approx(64 / 6_314, rel=1e-12)
    # 1.5 GB at 864 GB/s: 90 % of it and 1 ms of launch, or 60 % of it and 6 ms.
    assert curve.fast.at(1) == pytest.approx(1.5e9 / (864e9 * 0.9) + 0.001, rel=1e-12)
    assert curve.slow.at(1) == pytest.approx(1.5e9 / (864e9 * 0.6) + 0.006, rel=1e-12)
    assert curve.central.at(1) == pytest.approx((0.002_929_012_3 + 0.008_893_518_5) / 2, rel=1e-6)
    # Weight-only INT8 computes in FP16: 2 × 1.5e9 operations a prompt token at 30 to 70 % of 181 TFLOP/s.
    assert curve.fast.prefill_per_token_s == pytest.approx(3e9 / (181e12 * 0.7), rel=1e-12)
    assert curve.slow.prefill_per_token_s == pytest.approx(3e9 / (181e12 * 0.3), rel=1e-12)
    assert any("INT8" in note.text and "FP16" in note.value for note in curve.notes)
    assert any("from memory" in note.source for note in curve.notes)
    assert [curve.basis_of(b) for b in (1, 16, 64, 65)] == ["modelled", "modelled", "measured", "unmeasured"]


def test_a_modelled_step_is_never_longer_than_the_measured_one() -> None:
    # 1.5 GB at 60 % of 1,597 GB/s and 6 ms of launch are 7.6 ms, but 64 sequences took 5.79 ms.
    curve = curve_of(load_profile("g7e-int8").profile)
    assert curve.slow.at(1) == pytest.approx(64 / 11_046, rel=1e-12)


def test_fp8_counts_where_it_is_native_and_falls_back_where_it_is_not() -> None:
    native = curve_of(load_profile("g6e-fp8").profile)
    assert native.fast.prefill_per_token_s == pytest.approx(3e9 / (362e12 * 0.7), rel=1e-12)
    fallback = curve_of(load_profile("g5-fp8-qwen3-coder-30b").profile)
    # 4 A10G of 70 TFLOP/s FP16, 3.3e9 active parameters.
    assert fallback.fast.prefill_per_token_s == pytest.approx(6.6e9 / (4 * 70e12 * 0.7), rel=1e-12)
    assert any("FP8" in note.text and "FP16" in note.value for note in fallback.notes)


def test_a_mixture_of_experts_reads_its_active_weights() -> None:
    curve = curve_of(load_profile("g5-fp8-qwen3-coder-30b").profile)
    assert curve.fast.at(1) == pytest.approx(3.3e9 / (4 * 600e9 * 0.9) + 0.001, rel=1e-12)
    assert curve.central.at(4) == pytest.approx(4 / 346.3, rel=1e-12)


def test_a_streaming_point_gives_a_range_where_its_figures_disagree() -> None:
    curve = curve_of(load_profile("g7-fp8-qwen3-coder-30b").profile)
    assert curve.fast.at(4) == pytest.approx(0.0089)  # the mean time between tokens
    assert curve.slow.at(4) == pytest.approx((1.3158 - 0.1189) / 127, rel=1e-9)  # what the whole response leaves
    # The measured TTFT: half a step of waiting, a step shared with the prompt, the prompt, the rest is overhead.
    prompt = 128 * 6.6e9 / (2 * 400e12 * 0.7)
    assert curve.fast.request_overhead_s == pytest.approx(0.1189 - 1.5 * 0.0089 - prompt, rel=1e-9)
    assert any("provisional" in note.value for note in curve.notes)
    assert any("differs" in note.text for note in curve.notes)  # 118.9 + 127 × 8.9 ms is 5 % short of 1,315.8


@pytest.mark.parametrize("name", [*NEOSAPIENCE, *QWEN])
def test_draws_go_from_fast_to_slow_and_never_fall(name: str) -> None:
    curve = curve_of(load_profile(name).profile)
    draws = [curve.draw(u, u) for u in (0.0, 0.25, 0.5, 0.75, 1.0)]
    for drawn, end in ((draws[0], curve.fast), (draws[2], curve.central), (draws[4], curve.slow)):
        np.testing.assert_allclose(drawn.time_s, end.time_s, rtol=1e-12)
        assert drawn.prefill_per_token_s == pytest.approx(end.prefill_per_token_s, rel=1e-12)
        assert drawn.request_overhead_s == pytest.approx(end.request_overhead_s, rel=1e-12)
    for a, b in pairwise(draws):
        assert (a.time_s <= b.time_s).all()
        assert a.prefill_per_token_s < b.prefill_per_token_s
    assert all((np.diff(drawn.time_s) >= 0).all() for drawn in draws)
    assert curve.draw(0.0, 1.0).prefill_per_token_s == pytest.approx(curve.slow.prefill_per_token_s, rel=1e-12)
    assert (curve.draw(0.0, 1.0).time_s == curve.fast.time_s).all()


def modelled(points: str, model: str = 'parameters = 1.5e9\nprecision = "int8"') -> Curve:
    text = BY_HAND.replace(STEP, points).replace('name = "a model"', f'name = "a model"\n{model}')
    return curve_of(read(text))


def test_several_points_make_a_curve_that_never_falls() -> None:
    points = "".join(
        f'[[point]]\nkind = "static"\nbatch = {b}\noutput_tps = {tps}\n'
        for b, tps in ((32, 3_200), (8, 700), (64, 6_500))
    )
    curve = modelled(points)
    assert curve.central.batch.tolist() == [1, 8, 32, 64]
    # 8 took 11.4 ms; 10.0 ms at 32 and 9.8 ms at 64 are lifted to it.
    np.testing.assert_allclose(curve.central.time_s[1:], 8 / 700, rtol=1e-12)
    assert curve.basis == ("modelled", "measured", "measured", "measured")
    assert curve.basis_of(16) == "modelled"


def test_an_open_point_counts_its_sequences_by_littles_law() -> None:
    # 800 tok/s with 10 ms between the tokens of each: 8 at once.
    curve = modelled('[[point]]\nkind = "open"\nrate = 8\noutput_tps = 800\nitl = { mean = "10 ms" }\n')
    assert curve.central.batch.tolist() == [1, 8]
    assert curve.central.at(8) == pytest.approx(0.01)


def test_more_users_than_seats_run_at_the_seats() -> None:
    curve = modelled('[[point]]\nkind = "closed"\nconcurrency = 100\noutput_tps = 6400\n')
    assert curve.central.batch.tolist() == [1, 64]
    assert curve.central.at(64) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("points", "model", "words"),
    [
        (POINT, "", ["model.parameters", "model.precision", "[step]"]),
        (POINT, "parameters = 1.5e9", ["model.precision"]),
        (POINT, 'parameters = 1.5e9\nprecision = "q5_k"', ["q5_k", "int8"]),
        (
            '[[point]]\nkind = "closed"\nconcurrency = 4\nttft = { mean = "1 s" }\n',
            'parameters = 1.5e9\nprecision = "int8"',
            ["throughput", "output_tps"],
        ),
    ],
)
def test_points_that_say_too_little_are_refused_with_what_to_add(points: str, model: str, words: list[str]) -> None:
    with pytest.raises(NotMeasured) as caught:
        modelled(points, model)
    assert [word for word in words if word not in str(caught.value)] == []


def test_an_unknown_accelerator_is_refused_unless_it_is_named() -> None:
    text = BY_HAND.replace(STEP, POINT).replace('"a model"', '"a model"\nparameters = 1.5e9\nprecision = "fp16"')
    at_home = text.replace('"g6e.xlarge"', '"my-own-box"')
    with pytest.raises(NotMeasured, match=r"hardware\.accelerator"):
        curve_of(read(at_home))
    named = at_home.replace("[engine]", 'accelerator = "H100 SXM"\n[engine]')
    assert curve_of(read(named)).fast.at(1) == pytest.approx(3e9 / (3_350e9 * 0.9) + 0.001, rel=1e-12)


def test_a_ttft_of_a_static_batch_that_is_a_completion_time_is_noticed() -> None:
    profile = read(BY_HAND.replace(STEP, POINT + 'ttft = { mean = "1459 ms" }\n'))
    (note,) = remarks(profile)
    assert note.value == "143.9 tokens"
    assert "completion time" in note.text


# --- memory and hardware --------------------------------------------------------------------------------------------


def test_kv_blocks_by_hand() -> None:
    # 44.7 GiB of an L40S × 0.9 − 1.5 GB × 1.05, in blocks of 16 × 307,200 bytes.
    assert kv_blocks_of(load_profile("g6e-int8").profile) == 8_467
    blocks = (44.7 * 2**30 * 0.9 - 1.5e9 * 1.05) / (16 * 307_200)
    assert blocks == pytest.approx(8_467.9, abs=0.1)
    shape = load_profile("g6e-int8").profile.model
    assert shape.layers and shape.kv_heads and shape.head_dim
    assert shape.kv_bytes_per_token == 2 * shape.layers * shape.kv_heads * shape.head_dim * 2 == 307_200


def test_kv_blocks_are_stated_unknown_or_from_the_models_shape() -> None:
    assert kv_blocks_of(read(BY_HAND)) is None
    assert kv_blocks_of(read(BY_HAND.replace("max_num_seqs", "kv_blocks = 77\nmax_num_seqs"))) == 77
    # Llama-3.3-70B keeps 327,680 bytes a token in BF16; its FP8 weights leave (4 × 44.7 GiB × 0.9 − 73.5 GB).
    shape = 'parameters = 70e9\nprecision = "fp8"\nlayers = 80\nkv_heads = 8\nhead_dim = 128'
    text = BY_HAND.replace('"a model"', f'"a model"\n{shape}')
    assert kv_blocks_of(read(text.replace("g6e.xlarge", "g6e.12xlarge"))) == 18_937
    with pytest.raises(DataError, match="does not fit"):
        kv_blocks_of(read(text))


def test_instances_are_those_of_the_sheet() -> None:
    g6e = hardware.instance("g6e.12xlarge")
    assert (g6e.accelerator, g6e.count, g6e.vcpus) == ("L40S", 4, 48)
    assert g6e.memory_bytes_usable == 44.7 * 2**30
    assert g6e.bandwidth_Bps == 864e9
    assert g6e.regions_date == "2026-05-20"
    assert "ap-northeast-2" in g6e.regions and "eu-west-1" not in g6e.regions
    assert "ap-northeast-2" in hardware.instance("g7e.2xlarge").regions
    assert hardware.instance("g7.12xlarge").regions == ()  # launched after that date
    part = hardware.instance("g6f.large")
    assert part.count * part.memory_bytes_usable == pytest.approx(2.79 * 2**30, rel=0.002)


def test_accelerators_carry_their_peaks_and_how_sure_they_are() -> None:
    a10g = hardware.accelerator("a10g")
    assert a10g.peak_flops == {"fp16": 70e12, "int8": 140e12}
    assert "fp8" not in a10g.formats
    assert hardware.accelerator("RTX PRO 4500") is hardware.accelerator("RTX PRO 4500 Blackwell SE")
    assert "from memory" in a10g.source
    named = {instance.accelerator for instance in hardware.instances().values()}
    assert {name for name in named if not hardware.knows_accelerator(name)} == set()


def test_unknown_hardware_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"g6e\.xlarge"):
        hardware.instance("g6e.xlrge")
    with pytest.raises(ScenarioError, match=r'write the EC2 name "g5\.xlarge"'):
        hardware.instance("ml.g5.xlarge")
    with pytest.raises(ScenarioError, match="L40S"):
        hardware.accelerator("L40")

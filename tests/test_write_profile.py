"""A profile that is written reads back equal, whatever it holds, and is written whole or not at all."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.errors import ScenarioError
from fleetcast.profiles.profile import Profile
from fleetcast.profiles.read import library, load_profile, parse_profile
from fleetcast.profiles.write import to_toml, write_profile

positive = st.floats(min_value=1e-9, max_value=1e6, allow_nan=False)
words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
STATS = ("min", "p50", "p90", "p99", "p99.9", "max")


def again(profile: Profile) -> Profile:
    return parse_profile(to_toml(profile).encode(), "written")


def seconds(value: float) -> str:
    return f"{value!r} s"


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    def latency() -> dict[str, Any]:
        rising = sorted(draw(st.lists(positive, min_size=len(STATS), max_size=len(STATS))))
        return {"mean": seconds(draw(positive)), **dict(zip(STATS, map(seconds, rising), strict=True))}

    def point(kind: str) -> dict[str, Any]:
        load = {"closed": "concurrency", "static": "batch", "open": "rate"}[kind]
        found: dict[str, Any] = {"kind": kind, load: draw(positive if load == "rate" else st.integers(1, 10**6))}
        found |= {"output_tps": draw(positive), "ttft": latency(), "itl": latency(), "errors": draw(st.floats(0, 1))}
        found["input_tokens"] = {"tokens": draw(st.lists(positive, min_size=2, max_size=2)), "count": [1.0, 3.0]}
        found["output_tokens"] = {"mean": draw(positive), "cv": draw(st.floats(0, 9))}
        found["note"], found["duration"] = draw(words), seconds(draw(positive))
        found["provenance"] = {"tool": draw(words), "sha256": "0" * 64, "date": "2026-07-20", "command": draw(words)}
        return found

    steps = sorted(draw(st.lists(positive, min_size=3, max_size=3)))
    return Profile.model_validate(
        {
            "schema": 1,
            "name": draw(words),
            "model": {"name": draw(words), "parameters": draw(positive), "kv_bytes_per_token": draw(positive)},
            "hardware": {"instance": "p5.48xlarge", "count": draw(st.integers(1, 8))},
            "engine": {"policy": "chunked", "max_num_seqs": draw(st.integers(1, 10**6)), "assumed": ["policy"]},
            "source": {"title": draw(words)},
            "point": [point(kind) for kind in ("static", "closed", "open")],
            "step": {
                "batch": [1, 2, 64],
                "time": [seconds(step) for step in steps],
                "prefill_per_token": seconds(draw(positive)),
                "mixing": draw(st.sampled_from([1.0, 4.5, "max"])),
            },
        }
    )


@given(profiles())
def test_what_is_written_reads_back_equal(profile: Profile) -> None:
    assert again(profile) == profile


@pytest.mark.parametrize("name", library())
def test_every_built_in_profile_reads_back_equal(name: str) -> None:
    profile = load_profile(name).profile
    assert again(profile) == profile


def test_durations_are_written_as_a_person_would() -> None:
    text = to_toml(load_profile("g7-fp8-qwen3-coder-30b").profile)
    (point,) = tomllib.loads(text)["point"]
    assert point["e2e"] == {"mean": "1315.8 ms", "p99": "1501.1 ms"}
    assert point["itl"]["mean"] == "8.9 ms"


def test_part_of_an_instance_stays_part_of_it() -> None:
    """Absent, `count` would mean all accelerators of the instance."""
    whole = load_profile("g7-fp8-qwen3-coder-30b").profile
    part = Profile.model_validate(
        whole.model_dump(by_alias=True, exclude_none=True)
        | {"hardware": {"instance": "p5.48xlarge", "count": 1}, "point": (), "step": {"batch": [1], "time": ["1 s"]}}
    )
    assert part.hardware.count == 1
    assert again(part).hardware.count == 1


def test_the_maximum_of_both_parts_is_a_word() -> None:
    by_hand = parse_profile(
        b'schema = 1\nname = "x"\n[model]\nname = "m"\n[hardware]\ninstance = "box"\n[engine]\npolicy = "chunked"\n'
        b'max_num_seqs = 1\n[step]\nbatch = [1]\ntime = ["5 us"]\nmixing = "max"\n',
        "x",
    )
    assert by_hand.step is not None and math.isinf(by_hand.step.mixing)
    step = tomllib.loads(to_toml(by_hand))["step"]
    assert (step["mixing"], step["time"]) == ("max", ["5 us"])
    assert again(by_hand) == by_hand


def test_comments_cannot_break_out_of_their_line() -> None:
    profile = load_profile("g6e-int8").profile
    text = to_toml(profile, comments=["one\nname = 'other'", "two"])
    assert text.startswith("# one name = 'other'\n# two\n")
    assert parse_profile(text.encode(), "x") == profile


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "mine.toml"
    target.write_text("what was there before", encoding="utf-8")
    write_profile(load_profile("g6e-int8").profile, target)
    assert load_profile(str(target)).profile == load_profile("g6e-int8").profile
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("name", [".", "missing/mine.toml", "file/mine.toml"])
def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ScenarioError, match="cannot write"):
        write_profile(load_profile("g6e-int8").profile, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == before

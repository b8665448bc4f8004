"""`simulate profile` and `simulate prices` as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetcast.cli import prices, profile
from fleetcast.errors import DataError, ScenarioError

RUN = CliRunner()
BY_HAND = """\
schema = 1
name = "by-hand"
[model]
name = "a model"
[hardware]
instance = "my-own-box"
[engine]
policy = "chunked"
max_num_seqs = 128
[step]
batch = [1, 64]
time = ["6 ms", "10 ms"]
mixing = "max"
"""


def run(app: object, *words: str) -> str:
    result = RUN.invoke(app, list(words), catch_exceptions=False)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_names_every_profile_with_its_price() -> None:
    text = run(profile.app, "list")
    row = next(line for line in text.splitlines() if line.startswith("g6e-int8"))
    assert row.split() == ["g6e-int8", "GPT-2", "XL", "int8", "g6e.xlarge", "batch", "64", "6,314", "$0.0819"]
    assert "4 users" in text and "$4.55" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_list_as_json() -> None:
    data = json.loads(run(profile.app, "list", "--format", "json"))
    by_name = {one["name"]: one for one in data["profiles"]}
    assert list(by_name) == sorted(by_name) and len(by_name) == 8
    (point,) = by_name["g7-fp8-qwen3-coder-30b"]["points"]
    assert round(point["usd_per_million_output_tokens"], 2) == 5.06


@pytest.mark.parametrize("name", ["g6e-int8", "g7-fp8-qwen3-coder-30b"])
def test_show_says_what_was_measured_and_what_is_modelled(name: str) -> None:
    text = run(profile.app, "show", name)
    assert max(len(line) for line in text.splitlines()) <= 100
    for heading in ("MEASURED", "MODELLED", "PROMPT", "MEMORY", "NOTES", "SOURCE"):
        assert heading in text
    basis = [line.split()[-1] for line in text.splitlines() if line.rstrip().endswith(("modelled", "measured"))]
    assert set(basis) == {"modelled", "measured"}


def test_show_g6e_int8_reads_as_it_should() -> None:
    text = run(profile.app, "show", "g6e-int8")
    assert "1.459 s" in text and "$0.0819" in text and "$1.861/h" in text
    assert "143.9 tokens" in text and "from memory, not verified" in text
    assert "10.1 ms" in text  # 64 / 6,314
    assert "2.9–8.9 ms" in text  # the range at batch 1
    assert "8,467 KV blocks" in text


def test_show_as_json_is_stable_and_complete() -> None:
    first = run(profile.app, "show", "g6e-int8", "--format", "json")
    assert first == run(profile.app, "show", "g6e-int8", "--format", "json")
    data = json.loads(first)
    (point,) = data["points"]
    assert point["usd_per_million_output_tokens"] == pytest.approx(0.081872734, rel=1e-8)
    assert [row["batch"] for row in data["curve"]["at"]] == [1, 2, 4, 8, 16, 32, 64]
    assert [row["basis"] for row in data["curve"]["at"]] == ["modelled"] * 6 + ["measured"]
    assert data["curve"]["uncertain"] is True
    assert data["memory"] == {"kv_blocks": 8467, "kv_tokens": 8467 * 16, "basis": "derived"}
    assert data["price"]["date"] == "2026-07-20"


def test_points_are_sorted_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    def points(*batches: int) -> str:
        rows = "".join(f'[[point]]\nkind = "static"\nbatch = {b}\noutput_tps = {b * 100}\n' for b in batches)
        path = tmp_path / "p.toml"
        path.write_text(BY_HAND + rows)
        data = json.loads(run(profile.app, "show", str(path), "--format", "json"))
        del data["sha256"]
        return json.dumps(data)

    assert points(64, 8, 16) == points(8, 16, 64)


def test_show_a_file_by_hand_without_a_price(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(BY_HAND)
    text = run(profile.app, "show", str(path))
    assert "stated" in text and "65–128" in text and "unmeasured" in text
    data = json.loads(run(profile.app, "show", str(path), "--format", "json"))
    assert data["price"] is None
    assert data["curve"]["mixing"] == "max"
    assert data["points"] == []


def test_show_points_that_cannot_be_modelled_still_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    step = BY_HAND.index("[step]")
    point = '[[point]]\nkind = "closed"\nconcurrency = 4\noutput_tps = 300\ninput_tokens = 128\n'
    path.write_text(BY_HAND[:step].replace("my-own-box", "g5.xlarge") + point)
    text = run(profile.app, "show", str(path))
    assert "4 users" in text and "$0.931" in text  # 1.006 / 3,600 / 300
    assert "model.parameters" in text
    data = json.loads(run(profile.app, "show", str(path), "--format", "json"))
    assert data["curve"] is None and "model.parameters" in data["no_curve"]


def test_mistakes_are_raised_for_the_front_door_to_word(tmp_path: Path) -> None:
    assert isinstance(RUN.invoke(profile.app, ["show", "g6e-int4"]).exception, ScenarioError)
    assert isinstance(RUN.invoke(profile.app, ["show", str(tmp_path)]).exception, DataError)
    assert isinstance(RUN.invoke(prices.app, ["show", "--region", "mars-1"]).exception, ScenarioError)
    assert isinstance(RUN.invoke(prices.app, ["show", "--instance", "ml.g5.xlarge"]).exception, ScenarioError)
    assert RUN.invoke(profile.app, ["show", "g6e-int8", "--format", "yaml"]).exit_code == 2


def test_prices_of_one_instance_everywhere() -> None:
    text = run(prices.app, "show", "--instance", "g7e.2xlarge")
    seoul = next(line for line in text.splitlines() if "ap-northeast-2" in line)
    assert "$4.134956" in seoul and "inferred" in seoul and seoul.rstrip().endswith("yes")
    home = next(line for line in text.splitlines() if "us-east-1" in line)
    assert "$3.36312" in home and "inferred" not in home
    assert max(len(line) for line in text.splitlines()) <= 100


def test_prices_of_one_region_with_its_network() -> None:
    data = json.loads(run(prices.app, "show", "--region", "ap-northeast-2", "--format", "json"))
    row = next(row for row in data["on_demand"] if row["instance"] == "g6e.xlarge")
    assert row["usd"] == pytest.approx(1.861 * 1.2295)
    assert (row["inferred"], row["offered"], row["offered_as_of"]) == (True, True, "2026-05-20")
    assert {line["usd"] for line in data["network"]} == {0.013, 0.01, 0.006, 0.004, 0.08}


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, fleetcast.cli.profile, fleetcast.cli.prices\n"
        "heavy = {'numpy', 'pydantic', 'polars', 'numba', 'altair', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

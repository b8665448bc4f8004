"""Calibration: a system of known speed is measured by replay, and the fit has to find it again."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fleetcast.errors import NotMeasured
from fleetcast.profiles.curve import curve_of
from fleetcast.profiles.profile import Profile
from fleetcast.profiles.read import load_profile, parse_profile
from fleetcast.profiles.write import write_profile
from fleetcast.sim.calibration.bench import Bench, Lengths, play
from fleetcast.sim.calibration.profile import calibrate_profile
from fleetcast.sim.contract import Replica

SEATS = 16
TRUTH = Replica(
    step_s=np.r_[0.0, 0.010 + 0.0005 * np.arange(1, SEATS + 1)],
    max_num_seqs=SEATS,
    prefill_fixed_s=0.010,
    prefill_per_token_s=0.0001,
    policy="prefill-first",
    max_prompts_per_iteration=1,
)
KEYS = [("ttft", "mean"), ("tpot", "mean"), ("e2e", "mean"), ("e2e", "p90"), ("output_tps", "mean")]


def measured() -> Profile:
    """Return the profile that a benchmark of TRUTH would give, with nothing told of the engine."""
    rows = []
    for users, requests in ((1, 40), (4, 160), (8, 240), (16, 320), (32, 480)):
        bench = Bench("", "closed", users, Lengths(200.0, 0.0), Lengths(64.0, 0.0), {}, requests)
        found = play(bench, TRUTH, 5, keys=KEYS)
        rows.append(f"""
[[point]]
kind = "closed"
concurrency = {users}
requests = {requests}
input_tokens = {{ mean = 200, cv = 0 }}
output_tokens = {{ mean = 64, cv = 0 }}
output_tps = {found["output_tps", "mean"]:.6g}
ttft = {{ mean = "{1e3 * found["ttft", "mean"]:.6g} ms" }}
tpot = {{ mean = "{1e3 * found["tpot", "mean"]:.6g} ms" }}
e2e = {{ mean = "{1e3 * found["e2e", "mean"]:.6g} ms", p90 = "{1e3 * found["e2e", "p90"]:.6g} ms" }}
""")
    head = """
schema = 1
name = "known"
[model]
name = "known"
[hardware]
instance = "g6e.xlarge"
[engine]
policy = "chunked"
max_num_seqs = 32
assumed = ["policy", "max_num_seqs"]
"""
    return parse_profile((head + "".join(rows)).encode(), "known.toml")


@pytest.fixture(scope="module")
def calibrated() -> Profile:
    return calibrate_profile(measured())[0]


def test_the_known_truth_is_found(calibrated: Profile) -> None:
    step = calibrated.step
    assert step is not None and step.points == calibrated.points_hash
    assert calibrated.engine.policy == "prefill-first"
    assert calibrated.engine.max_prompts_per_iteration == 1
    assert calibrated.engine.max_num_seqs == SEATS
    speed = curve_of(calibrated).central
    for batch in (1, 4, 8, 16):
        assert speed.at(batch) == pytest.approx(0.010 + 0.0005 * batch, rel=0.05), batch
    prompt = speed.prefill_fixed_s + 200 * speed.prefill_per_token_s + speed.request_overhead_s
    assert prompt == pytest.approx(0.030, rel=0.05)


def test_what_is_left_over_is_stored(calibrated: Profile) -> None:
    assert calibrated.step is not None
    rows = {(row.point, row.figure): row.error for row in calibrated.step.residual}
    assert len(rows) == 5 * len(KEYS)
    assert np.median(np.abs([error for (_, figure), error in rows.items() if figure == "mean(e2e)"])) < 0.03


def test_runs_draw_from_the_fit(calibrated: Profile, tmp_path: Path) -> None:
    curve = curve_of(calibrated)
    assert curve.uncertain and curve.basis_of(8) == "measured"
    draws = [curve.draw(u, u) for u in (0.05, 0.35, 0.65, 0.95)]
    assert len({float(draw.at(8)) for draw in draws}) > 1
    for draw in draws:
        assert 0.012 < draw.at(8) < 0.016 and (np.diff(draw.time_s) >= 0).all()
    write_profile(calibrated, tmp_path / "known.toml", ["calibrated"])
    again = load_profile(str(tmp_path / "known.toml")).profile
    assert again.step is not None and again.points_hash == calibrated.points_hash
    np.testing.assert_allclose(curve_of(again).draw(0.3, 0.3).time_s, curve.draw(0.3, 0.3).time_s, rtol=1e-9)


def test_nothing_to_replay_is_said() -> None:
    with pytest.raises(NotMeasured, match="nothing to calibrate"):
        calibrate_profile(measured().model_copy(update={"point": ()}))


def test_the_same_points_give_the_same_fit(calibrated: Profile) -> None:
    again = calibrate_profile(measured())[0]
    assert again.step == calibrated.step
    assert math.isfinite(again.step.noise_cv)

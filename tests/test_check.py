"""What the checks find: right figures pass, and each kind of wrong one is named, with what it means and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleetcast.cli.app import app
from fleetcast.errors import ScenarioError
from fleetcast.profiles.check import CODES, Finding, check, remarks
from fleetcast.profiles.profile import Profile
from fleetcast.profiles.read import library, load_profile

RUN = CliRunner()
# Throughput × latency / batch of the published points: batch 64, tok/s, seconds.
NEOSAPIENCE = {"g5-int8": 160.8, "g6e-int8": 143.9, "g6e-fp8": 127.0, "g7e-int8": 128.1, "g7e-fp8": 128.0}
SAGEMAKER = ("g5-fp8-qwen3-coder-30b", "g6-fp8-qwen3-coder-30b", "g7-fp8-qwen3-coder-30b")
HEAD: dict[str, Any] = {
    "schema": 1,
    "name": "x",
    "model": {"name": "m"},
    "hardware": {"instance": "box"},
    "engine": {"policy": "chunked", "max_num_seqs": 64},
}
# A run that obeys every law: 8 users, 100 tokens after 0.2 s and 99 gaps of 20 ms, so 8 / 2.18 s = 3.67 requests/s.
RIGHT: dict[str, Any] = {
    "kind": "closed",
    "concurrency": 8,
    "requests": 20_000,
    "input_tokens": 400,
    "output_tokens": {"mean": 100, "cv": 0},
    "output_tps": 8 / 2.18 * 100,
    "ttft": {"mean": "0.2 s"},
    "tpot": {"mean": "20 ms"},
    "e2e": {"mean": "2.18 s"},
}


def of(*points: dict[str, Any]) -> tuple[Finding, ...]:
    return check(Profile.model_validate(HEAD | {"point": points}))


def codes(findings: tuple[Finding, ...], severity: str | None = None) -> list[str]:
    return [one.code for one in findings if severity in (None, one.severity)]


def the(code: str, findings: tuple[Finding, ...]) -> Finding:
    (found,) = (one for one in findings if one.code == code)
    return found


def without(*keys: str, **other: Any) -> dict[str, Any]:
    return {key: value for key, value in RIGHT.items() if key not in keys} | other


@pytest.mark.parametrize("name", NEOSAPIENCE)
def test_a_batch_completion_time_says_so_by_itself(name: str) -> None:
    found = the("batch-completion", check(load_profile(name).profile))
    assert found.severity == "info" and found.where == "static batch of 64"
    assert "batch completion time, not a time to first token" in found.what
    assert float(found.value.removesuffix(" tokens")) == pytest.approx(NEOSAPIENCE[name], abs=0.11)


@pytest.mark.parametrize("name", SAGEMAKER)
def test_littles_law_holds_exactly_on_the_published_closed_loops(name: str) -> None:
    findings = check(load_profile(name).profile)
    assert "Little's law holds exactly" in the("littles-law-holds", findings).what
    assert codes(findings, "severe") == []


@pytest.mark.parametrize("name", library())
def test_no_built_in_profile_has_a_severe_finding(name: str) -> None:
    findings = check(load_profile(name).profile)
    assert codes(findings, "severe") == []
    assert {one.code for one in findings} <= CODES.keys()
    assert all(one.where and one.what and one.why and one.do for one in findings)


def test_a_run_that_obeys_every_law_is_told_so() -> None:
    assert codes(of(RIGHT)) == ["littles-law-holds"]


@pytest.mark.parametrize(
    ("factor", "severity"),
    [(1.03, None), (0.97, None), (1.12, "warning"), (0.88, "warning"), (1.3, "severe"), (0.7, "severe")],
)
def test_littles_law_is_severe_beyond_a_fifth(factor: float, severity: str | None) -> None:
    findings = of(without(output_tps=RIGHT["output_tps"] * factor))
    assert [one.severity for one in findings if one.code == "littles-law"] == ([severity] if severity else [])
    if severity:
        assert f"{RIGHT['output_tps'] * factor:g} against 367" in the("littles-law", findings).why


def test_a_short_closed_loop_is_not_blamed_for_its_empty_seats() -> None:
    """16 requests of 8 users: the slowest of the last ones may run alone for as long as it takes."""
    slow = {"mean": "2.18 s", "max": "4.36 s"}
    drained = RIGHT["output_tps"] * 0.55
    findings = of(without("ttft", "tpot", requests=16, output_tps=drained, e2e=slow))
    assert "littles-law" not in codes(findings) and "littles-law-holds" not in codes(findings)
    assert "8 users" in the("short-run", findings).what
    long = of(without("ttft", "tpot", requests=16_000, output_tps=drained, e2e=slow))
    assert the("littles-law", long).severity == "severe"


@pytest.mark.parametrize("key", ["ttft", "tpot", "e2e"])
@pytest.mark.parametrize("scale", [1e3, 1e-3])
def test_seconds_taken_for_milliseconds_are_severe(key: str, scale: float) -> None:
    wrong = float(RIGHT[key]["mean"].split()[0]) * scale
    unit = RIGHT[key]["mean"].split()[1]
    findings = of(without(**{key: {"mean": f"{wrong!r} {unit}"}}))
    if (key, scale) == ("ttft", 1e-3):  # 0.2 ms to a first token is quick, and nothing contradicts it
        assert codes(findings, "severe") == []
        return
    assert codes(findings, "severe") == ["units"], findings


def test_first_token_and_gaps_make_the_whole_answer() -> None:
    found = the("e2e-sum", of(without(tpot={"mean": "30 ms"})))
    assert found.severity == "warning" and found.value == "3.17 s against 2.18 s"


def test_throughput_that_counts_prompt_tokens_is_severe() -> None:
    findings = of(without(output_tps=RIGHT["output_tps"] * 5))  # 400 in + 100 out
    assert codes(findings, "severe") == ["prompt-tokens"]
    assert "without them it is 367" in the("prompt-tokens", findings).what


def test_a_static_ttft_that_is_a_completion_time_is_severe() -> None:
    point = {"kind": "static", "batch": 64, "output_tps": 6314.0, "ttft": {"mean": "1459 ms"}}
    found = the("ttft-is-completion", of(point))
    assert (found.severity, found.value) == ("severe", "143.9 tokens")
    short = point | {"ttft": {"mean": "60 ms"}}
    assert codes(of(short)) == []


def test_a_long_prompt_of_a_static_batch_is_no_completion_time() -> None:
    """64 prompts of 512 tokens last 3 s, as long as 60 iterations; the whole batch of 128 tokens lasts 9.4 s."""
    point = {"kind": "static", "batch": 64, "output_tps": 64 * 128 / 9.4, "ttft": {"mean": "3 s"}}
    assert codes(of(point | {"latency": "9.4 s"})) == []
    assert codes(of(point | {"output_tokens": 128})) == []
    assert codes(of(point | {"latency": "3.1 s"}), "severe") == ["ttft-is-completion"]


def test_all_failed_is_severe_and_hides_the_rest() -> None:
    findings = of(without(errors=1.0))
    assert codes(findings, "severe") == ["all-failed"]
    assert codes(of(without(errors=0.03)), "warning") == ["failed-requests"]


OPEN: dict[str, Any] = {
    "kind": "open", "rate": 10.0, "arrivals": "poisson", "requests": 20_000, "output_tokens": 100,
}  # fmt: skip


def test_an_overloaded_open_loop_is_a_warning() -> None:
    fine = OPEN | {"output_tps": 995.0, "e2e": {"mean": "2 s"}}
    over = OPEN | {"output_tps": 700.0, "e2e": {"mean": "300 s"}, "ttft": {"mean": "298 s", "min": "0.1 s"}}
    assert codes(of(fine)) == []
    assert the("saturated", of(over)).severity == "warning"


def test_a_client_that_holds_back_is_a_warning() -> None:
    held = OPEN | {"output_tps": 900.0, "achieved_rate": 9.0, "e2e": {"mean": "2 s"}}
    assert "client sent 9 requests/s, not 10" in the("client-cap", of(held)).what
    capped = OPEN | {"output_tps": 990.0, "max_concurrency": 20, "e2e": {"mean": "2 s"}}
    assert "of 20 that the client allows" in the("client-cap", of(capped)).what


def test_cut_off_requests_are_a_warning() -> None:
    assert "500 of 20500 requests" in the("censored", of(without(unfinished=500))).what
    timeout = {"mean": "2.18 s", "p50": "2 s", "p99": "30 s", "max": "30.01 s"}
    assert "all took 30 s" in the("censored", of(without(e2e=timeout))).what


@pytest.mark.parametrize(("requests", "few"), [(96, True), (999, True), (1_000, False)])
def test_a_p99_needs_a_thousand_requests(requests: int, few: bool) -> None:
    found = codes(of(without(requests=requests, ttft={"mean": "0.2 s", "p99": "0.3 s"})))
    assert ("few-requests" in found) is few


def test_repeats_that_disagree_are_a_warning() -> None:
    assert the("repeats-agree", of(RIGHT, without(output_tps=RIGHT["output_tps"] * 0.97))).severity == "info"
    other = without("ttft", "tpot", output_tps=8 / 3.0 * 100, e2e={"mean": "3 s"})
    assert the("repeats-disagree", of(RIGHT, other)).where == "8 users, 2 repeats"


def level(users: int, tps: float) -> dict[str, Any]:
    e2e = {"mean": f"{users * 100 / tps!r} s"}
    return without("ttft", "tpot", concurrency=users, output_tps=tps, e2e=e2e)


def test_throughput_that_falls_and_the_knee_are_named() -> None:
    findings = of(level(8, 800), level(16, 1_500), level(32, 1_600), level(64, 1_400))
    assert the("knee", findings).where == "16 users"
    assert the("not-monotone", findings).where == "64 users"
    assert not {"knee", "not-monotone"} & set(codes(of(level(8, 800), level(16, 1_590), level(32, 3_100))))


def test_remarks_are_the_findings_a_curve_rests_on() -> None:
    assert remarks(Profile.model_validate(HEAD | {"point": (RIGHT,)})) == ()
    (said,) = remarks(load_profile("g6e-int8").profile)
    assert said.value == "143.9 tokens" and said.text.startswith("static batch of 64: ")


# --- as a user types it -------------------------------------------------------------------------------------------


def test_check_prints_findings_and_exits_by_them(tmp_path: Path) -> None:
    fine = RUN.invoke(app, ["profile", "check", "g6e-int8"])
    assert fine.exit_code == 0 and "batch completion time" in fine.stdout and "143.9 tokens" in fine.stdout
    wrong = tmp_path / "wrong.toml"
    text = (
        'schema = 1\nname = "wrong"\n[model]\nname = "m"\n[hardware]\ninstance = "box"\n[engine]\npolicy = "chunked"\n'
        'max_num_seqs = 64\n[[point]]\nkind = "static"\nbatch = 64\noutput_tps = 6314\nttft = { mean = "1459 ms" }\n'
    )
    wrong.write_text(text, encoding="utf-8")
    severe = RUN.invoke(app, ["profile", "check", str(wrong), "--format", "json"])
    assert severe.exit_code == 1
    told = json.loads(severe.stdout)
    assert told["counts"]["severe"] == 1 and told["findings"][0]["code"] == "ttft-is-completion"


@pytest.mark.parametrize("words", [["nope"], ["g6e-int8", "--format", "xml"]])
def test_check_of_nothing_is_bad_input(words: list[str]) -> None:
    result = RUN.invoke(app, ["profile", "check", *words])
    assert isinstance(result.exception, ScenarioError) or result.exit_code == 2

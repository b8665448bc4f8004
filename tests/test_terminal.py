"""The summary screen, whole and in its corner cases."""

from __future__ import annotations

import io
from typing import Any

import pytest
from golden_files import result, same
from rich.console import Console

from fleetcast.reports import words
from fleetcast.reports.terminal import summary


def screen(data: dict[str, Any], **options: Any) -> str:
    """The summary as it is printed where there is no terminal."""
    out = io.StringIO()
    Console(file=out, width=80, highlight=False).print(summary(data, **options), soft_wrap=True)
    return out.getvalue()


def nothing_completed() -> dict[str, Any]:
    data = result()
    for name, metric in data["metrics"].items():
        if "(" in name or name == "cost":
            note = "no output token was completed" if name == "cost" else "lies among unfinished requests"
            metric.update(value=None, low=None, high=None, note=note)
    data["metrics"]["throughput"].update(value=0.0, low=0.0, high=0.0)
    data["thresholds"] = data["thresholds"][:1]
    data["thresholds"][0].update(value=None, low=None, high=None, verdict="crossed")
    for step in data["bill"]["waterfall"][1:]:
        step["usd_per_mtok"] = None
    data["latency"] = {kind: {"quantile": [], "value": [], "low": [], "high": []} for kind in data["latency"]}
    data["grades"] = {}
    return data


def one_run() -> dict[str, Any]:
    data = result()
    data["runs"] = 1
    for row in (*data["metrics"].values(), *data["thresholds"]):
        row.update(low=None, high=None)
    return data


def test_the_whole_screen() -> None:
    assert same("summary.txt", screen(result(), written="out/report.html"))


def test_the_screen_is_no_wider_than_94_and_about_30_lines() -> None:
    lines = screen(result(), written="out/report.html").splitlines()
    assert max(map(len, lines)) <= 94
    assert len(lines) <= 32
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize("width", [80, 94])
def test_long_words_break_within_the_width(width: int) -> None:
    data = result()
    data["summary"]["traffic"]["name"] = "a-trace-with-a-very-long-name-" * 4 + ".parquet"
    data["summary"]["fleet"]["chosen_why"] = "because " * 40
    data["alerts"][0]["text"] = "something is wrong and it takes long to say so: " * 5
    data["alerts"] = data["alerts"][:1]
    lines = screen(data, width=width).splitlines()
    latency = [line for line in lines if "ms" in line and "(" in line]  # a table has the width it needs
    assert max(len(line) for line in lines if line not in latency) <= width


def test_no_colour_and_no_markup_where_there_is_no_terminal() -> None:
    data = result()
    data["summary"]["traffic"]["name"] = "[bold]x[/bold]\x1b[31m\n.parquet"
    text = screen(data)
    assert "\x1b" not in text
    assert "[bold]x[/bold]?[31m?.parq" in text


def test_colour_on_a_terminal_says_nothing_new() -> None:
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", width=120).print(summary(result()), soft_wrap=True)
    assert "\x1b[1;31m" in out.getvalue()
    assert summary(result()).plain == screen(result()).rstrip("\n")


def test_one_run_has_no_intervals_and_says_so() -> None:
    text = screen(one_run())
    assert "1 random day · seed 0 · one run: no intervals" in text
    assert "176–192" not in text
    (row,) = [line for line in text.splitlines() if "p99(ttft) < 1 s  " in line]
    assert row.split() == ["✓", "p99(ttft)", "<", "1", "s", "184", "ms", "default"]


def test_a_replay_has_no_random_days() -> None:
    data = one_run()
    data["mode"] = "replay"
    assert "  replayed as recorded · seed 0" in screen(data)
    data["runs"] = 20
    assert "replayed as recorded, 20 draws of the profile" in screen(data)
    assert "random day" not in screen(data)


def test_no_network_is_said() -> None:
    data = result()
    data["summary"]["fleet"]["network"] = "none"
    assert "no network" in screen(data)
    assert "PrivateLink" not in screen(data)


def test_users_elsewhere_are_said_with_their_distance() -> None:
    data = result()
    data["summary"]["fleet"].update(client_region="ap-northeast-2", round_trip_s=0.18)
    assert "users in ap-northeast-2 (180 ms round trip)" in screen(data)


def test_too_few_samples_is_a_dash_and_a_reason() -> None:
    data = result()
    for kind in ("ttft", "e2e"):
        data["metrics"][f"p99.9({kind})"].update(value=None, low=None, high=None, note="needs 1,000 samples, has 120")
    text = screen(data)
    assert "first token        42.1 ms   94.9 ms   184 ms (176–192)      –\n" in text
    assert "– p99.9 of ttft, e2e: needs 1,000 samples, has 120\n" in text


def test_a_fleet_that_completes_nothing_still_has_a_bill() -> None:
    text = screen(nothing_completed())
    assert "✗ p99(ttft) < 1 s   –   crossed: lies among unfinished requests, default" in text
    assert "– all of ttft, tpot, itl, e2e: lies among unfinished requests\n" in text
    assert "MONEY     $89.84/day · no cost per token: no output token was completed" in text
    assert "nan" not in text.lower() and "none" not in text.lower()


def test_an_interval_that_reaches_the_unfinished_is_open() -> None:
    data = result()
    data["metrics"]["p99(ttft)"]["high"] = None
    assert "184 ms (176 ms or more)" in screen(data)


def test_the_waterfall_in_words_adds_up() -> None:
    text = " ".join(screen(result()).split())
    assert "$0.08 benchmark ($1.861/h at 6,314 tok/s, batch 64), +$0.77 batch under-fill, +$0.17 idle" in text
    assert "+$0.01 network = $1.03" in text  # 8 + 77 + 17 + 1 = 103 cents, though 0.082 + 0.767 + … rounds so only once


def test_only_the_first_alerts_are_shown() -> None:
    data = result()
    data["alerts"] = [{"code": "c", "text": f"alert {k}", "share": None, "do": ""} for k in range(5)]
    text = screen(data)
    assert "! alert 2" in text and "alert 3" not in text
    assert "and 2 more alerts in the report" in text


@pytest.mark.parametrize(
    ("verdicts", "sentence", "ending"),
    [
        ([], "No threshold was set", "no threshold set"),
        (["holds"], "The threshold holds", "all thresholds hold"),
        (["holds", "holds"], "All 2 thresholds hold", "all thresholds hold"),
        (["holds", "undecided"], "1 of 2 thresholds undecided, none crossed", "1 undecided"),
        (["crossed"], "1 of 1 threshold crossed", "1 crossed"),
        (["crossed", "undecided", "holds"], "1 of 3 thresholds crossed, 1 undecided", "1 crossed, 1 undecided"),
    ],
)
def test_the_verdict_in_words(verdicts: list[str], sentence: str, ending: str) -> None:
    data = {"thresholds": [{"verdict": verdict} for verdict in verdicts]}
    assert words.verdict(data) == sentence
    assert words.exit_meaning(data) == ending


def test_a_sparse_result_still_prints() -> None:
    """Fields a result may lack (no grades, bill, alerts, thresholds) leave out their lines."""
    data = {"runs": 2, "seed": 7, "summary": {}, "metrics": {}, "exit_code": 0}
    assert " ".join(screen(data).splitlines()[-1].split()) == "2 random days · seed 7 no threshold set → exit 0"

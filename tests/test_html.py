"""The HTML report: one offline file that cannot be broken out of, and that a browser really draws."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from golden_files import result
from test_terminal import nothing_completed, one_run
from typer.testing import CliRunner

from fleetcast.cli.report import report as report_command
from fleetcast.errors import DataError, ScenarioError
from fleetcast.reports import theme
from fleetcast.reports.html import render, write_report
from fleetcast.reports.toml import write_toml

EVIL = "<script>alert(1)</script>"
BREAK = "</script><script>alert(2)</script><!--"
CHARTS = ("thresholds", "latency", "batches", "day", "bill")


def evil_result() -> dict[str, Any]:
    """A result whose every free text tries to become markup or script."""
    data = result()
    data["by_tenant"][1]["tenant"] = EVIL
    data["summary"]["traffic"]["name"] = f"{EVIL}.parquet"
    data["bill"]["waterfall"][1]["why"] = BREAK
    data["bill"]["waterfall"][1]["step"] = BREAK
    data["thresholds"][0]["text"] = f"p99(ttft) < 1 s {BREAK}"
    data["alerts"][0]["text"] = EVIL
    data["assumptions"][0]["source"] = '"><img src=x onerror=alert(3)>'
    data["scenario"]["profile"] = '"><script>alert(4)</script>'
    data["command"] = EVIL
    return data


class Page(HTMLParser):
    """What a page's tags say: attributes that load something, the scripts, the text outside of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.handlers: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self._inside = tag
        self.text += " " if tag in ("td", "th", "br") else ""
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._inside != "style":
            self.text += data


@pytest.fixture(scope="module")
def page() -> str:
    return render(evil_result())


def test_the_same_result_gives_the_same_bytes(page: str) -> None:
    assert render(evil_result()) == page


def test_the_page_loads_nothing(page: str) -> None:
    loads = Page(page).loads
    assert loads
    assert all(load.startswith(("#", "data:application/toml")) for load in loads)
    assert not re.search(r"@import|url\(", page[: page.index("</style>")])


def test_the_page_forbids_every_request_and_eval(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'unsafe-inline';")
    assert "unsafe-eval" not in policy[1] and "http" not in policy[1]


def test_the_drawing_library_is_there_once_and_the_file_stays_small(page: str) -> None:
    assert page.count("window.vegaEmbed=") == 1
    assert len(page.encode()) < 3_000_000


def test_text_cannot_become_markup(page: str) -> None:
    found = Page(page)
    assert len(found.scripts) == len(CHARTS) + 2  # each chart's numbers, the library, the call
    assert found.handlers == []
    assert EVIL in found.text
    assert html.escape(EVIL) in page and EVIL not in page
    ours = page.replace(max((text for _, text in found.scripts), key=len), "")  # the library's own text may say <img
    assert "<!--" not in ours and "<img" not in ours


def test_charts_survive_hostile_text(page: str) -> None:
    specs = {
        attrs["data-chart"]: json.loads(text)
        for attrs, text in Page(page).scripts
        if attrs.get("type") == "application/json"
    }
    assert tuple(specs) == CHARTS
    assert specs["bill"]["datasets"]["data"][1]["why"] == BREAK
    assert BREAK in specs["thresholds"]["datasets"]["data"][0]["text"]


def test_the_colours_follow_the_page(page: str) -> None:
    specs = [text for attrs, text in Page(page).scripts if attrs.get("type") == "application/json"]
    assert "var(--accent)" in "".join(specs)
    for light, dark in theme.PALETTE.values():
        assert light in page[: page.index("</style>")] and dark in page[: page.index("</style>")]
        assert light not in "".join(specs)


def test_data_that_looks_like_a_colour_is_left_alone() -> None:
    data = result()
    data["bill"]["waterfall"][1]["why"] = theme.colour("accent")
    (bill,) = [text for attrs, text in Page(render(data)).scripts if attrs.get("data-chart") == "bill"]
    assert json.loads(bill)["datasets"]["data"][1]["why"] == theme.colour("accent")


def test_the_page_says_what_the_screen_says() -> None:
    text = " ".join(Page(render(result())).text.split())
    for words in (
        "1 of 3 thresholds crossed, 1 undecided",
        "smallest fixed fleet that meets p99(ttft) < 1 s on 8 days of its own",
        "21.4 ms 20.9–21.9 ms",
        "2026-07-20 AWS PrivateLink pricing · inferred",
        "Alerts (2)",
        "PrivateLink adds latency one way 0.3 ms",
        'simulate --profile g6e-int8 --traffic weekday.parquet --threshold "p99(itl) < 20 ms"',
        "a71d00000000000000000000000000000000000000000000000000000000e05f",
        "numba 0.62.1",
        "globex 241,980 23,954,020 42.4 ms 189 ms",
    ):
        assert words in text


def test_the_scenario_can_be_downloaded_as_it_ran() -> None:
    data = result()
    data["scenario"]["what_if"] = [{"name": 'a "b" \\ c', "fleet": {"replicas": 3}}]
    data["scenario"]["engine"] = {"max_num_seqs": None, "kv_blocks": 12}
    (link,) = [load for load in Page(render(data)).loads if load.startswith("data:")]
    read = tomllib.loads(unquote(link.partition(",")[2]))
    data["scenario"]["engine"].pop("max_num_seqs")  # TOML has no null: what was not set is not there
    assert read == data["scenario"]


def test_toml_of_every_kind_of_value() -> None:
    values = {
        "a": 1,
        "b": 0.1,
        "c": True,
        "d": "é\n\t\"'\x7f",
        "e": [1, [2.5, "x"]],
        "f": {},
        "p99(ttft)": {"x y": -1e-9},
    }
    assert tomllib.loads(write_toml(values)) == values


@pytest.mark.parametrize("make", [nothing_completed, one_run])
def test_corner_cases_have_a_page(make: Any) -> None:
    found = Page(render(make())).text
    assert not re.search(r"\b(nan|None|undefined)\b", found)
    if make is one_run:
        assert "One run gives no intervals" in found
    else:
        assert "No cost per token: no output token was completed" in " ".join(found.split())


def test_tables_are_left_out_where_there_is_nothing() -> None:
    data = result()
    data.update(by_tenant=[], alerts=[], assumptions=[], thresholds=[])
    text = render(data)
    assert 'id="tenants"' not in text and "Alerts (0)" in text and "Nothing to warn of." in text


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    write_report(result(), path)
    before = path.read_bytes()
    assert before.startswith(b"<!DOCTYPE html>")

    def full(self: Path, *_: object, **__: object) -> int:
        with open(self, "w") as file:
            file.write("<!DOC")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ScenarioError, match="No space left on device"):
        write_report(one_run(), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_report_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot write"):
        write_report(result(), tmp_path / "missing" / "report.html")


# --- simulate report --------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    import typer

    app = typer.Typer()
    app.command()(report_command)
    return CliRunner().invoke(app, arguments)


def test_the_command_rebuilds_the_report(tmp_path: Path) -> None:
    text = json.dumps(result(), ensure_ascii=False)
    (tmp_path / "results.json").write_text(text, "utf-8")
    shown = run(str(tmp_path))
    assert shown.exit_code == 0, shown.output
    assert "1 crossed, 1 undecided → exit 1" in shown.stdout
    assert (tmp_path / "report.html").read_text("utf-8") == render(result())
    assert run(str(tmp_path), "--format", "json").stdout == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "holds no results.json"),
        ("{", "is not JSON"),
        ("[]", "is not a result of fleetcast"),
        ('{"schema": 1, "metrics": {}}', "is not a result of fleetcast"),
        ('{"schema": 99, "metrics": {}, "summary": {}, "thresholds": []}', "its schema is 99"),
        (b"\xff\xfe", "is not JSON"),
    ],
)
def test_the_command_says_what_is_wrong_with_its_folder(tmp_path: Path, text: str | bytes | None, said: str) -> None:
    if text is not None:
        (tmp_path / "results.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    error = run(str(tmp_path)).exception
    assert isinstance(error, DataError)
    assert said in str(error)
    assert not (tmp_path / "report.html").exists()


# --- in a browser -----------------------------------------------------------------------------------


def browse(path: Path, profile: Path) -> tuple[str, list[str]]:
    """Open *path* in headless Chromium: the page as it is after its scripts, and what the console heard."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("needs Chromium (chromium, chromium-browser or google-chrome)")
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=20000 --enable-logging=stderr --v=0 --dump-dom"
    )
    done = subprocess.run(
        [browser, *flags.split(), f"--user-data-dir={profile}", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Drawn(HTMLParser):
    """The charts in a page after its scripts: how many marks of each kind have a shape."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.charts: dict[str, dict[str, int]] = {}
        self.state: dict[str, str | None] = {}
        self.text = ""
        self._chart = self._mark = ""
        self._skip = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._skip = tag in ("script", "style")
        if (found.get("id") or "").startswith("chart-"):
            self._chart = str(found["id"]).removeprefix("chart-")
            self.state[self._chart] = found.get("data-drawn")
        if tag == "svg" and "marks" in (found.get("class") or "").split():
            self.charts[self._chart] = {}
        kind = re.match(r"mark-(\w+) role-mark", found.get("class") or "")
        if kind:
            self._mark = kind[1]
        elif tag in ("g", "section") and "role-" in (found.get("class") or ""):
            self._mark = ""
        shape = (
            found.get("d") or found.get("x2") or found.get("y2") or (found.get("transform") if tag == "text" else "")
        )
        if self._chart in self.charts and self._mark and tag in ("path", "line", "text", "rect") and shape:
            assert "NaN" not in shape
            marks = self.charts[self._chart]
            marks[self._mark] = marks.get(self._mark, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        self._skip = False

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.text += data


def test_a_browser_draws_every_chart_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(evil_result(), path)
    dom, console = browse(path, tmp_path / "profile")
    drawn = Drawn(dom)
    assert console == []  # neither an error nor anything the policy had to block
    assert drawn.state == dict.fromkeys(CHARTS, "yes")
    marks = drawn.charts
    assert marks["thresholds"]["symbol"] >= 3 and marks["thresholds"]["rect"] >= 3
    assert marks["latency"]["line"] >= 4 and marks["latency"]["area"] >= 4
    assert marks["batches"]["rect"] >= 65 and marks["batches"]["area"] == 1 and marks["batches"]["line"] == 1
    assert marks["day"]["area"] == 5 and marks["day"]["line"] == 5
    assert marks["bill"]["rect"] == 5 and marks["bill"]["text"] == 5
    assert EVIL in drawn.text  # the tenant is text
    assert "<script>alert" not in re.sub(r"<script.*?</script>", "", dom, flags=re.S)


def test_a_browser_says_when_a_chart_cannot_be_drawn(tmp_path: Path) -> None:
    """The check above can fail: a broken chart and a blocked request both reach the console."""
    path = tmp_path / "report.html"
    text = render(result()).replace('"orient":"horizontal","strokeWidth"', '"orient":"horizontal","type":"nope","x"')
    path.write_text(text.replace("</body>", '<img src="https://192.0.2.1/x.png"></body>'), encoding="utf-8")
    dom, console = browse(path, tmp_path / "profile")
    assert Drawn(dom).state["latency"] == "no"
    assert Drawn(dom).state["bill"] == "yes"
    assert "This chart could not be drawn" in dom
    assert any("Content Security Policy" in line for line in console)

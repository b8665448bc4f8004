"""Sentences made of a result that the screen, the charts and the HTML report share.

They look numbers up and format them; what needs counting over requests or runs is counted in the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetcast.reports import theme

Result = Mapping[str, Any]

PERCENTILES = ("p50", "p90", "p99", "p99.9")
EXIT_WITHOUT_THRESHOLDS = "no threshold set"


def what_ran(result: Result) -> str:
    """Return how the days were made: `20 random days`, `replayed as recorded`."""
    runs = int(result.get("runs", 1))
    if result.get("mode") == "replay":
        return "replayed as recorded" + (f", {theme.plural(runs, 'draw')} of the profile" if runs > 1 else "")
    return theme.plural(runs, "random day")


def ran(result: Result) -> list[tuple[str, list[str]]]:
    """Return what was simulated: the traffic, the profile and the fleet, each a name and its facts."""
    about = result.get("summary") or {}
    traffic, profile, fleet = (about.get(key) or {} for key in ("traffic", "profile", "fleet"))
    return [
        (_printable(traffic.get("name", "traffic")), _traffic_words(traffic)),
        (_printable(profile.get("name", "profile")), _profile_words(profile)),
        ("fleet", _fleet_words(fleet)),
    ]


def _printable(name: Any) -> str:
    """A file may be called anything; a screen is not to obey its name."""
    return "".join(char if char.isprintable() else "?" for char in str(name))


def chosen_why(result: Result) -> str:
    """Return why this fleet was chosen, empty when the user asked for it."""
    fleet = (result.get("summary") or {}).get("fleet") or {}
    return str(fleet.get("chosen_why") or "") if fleet.get("chosen") else ""


def _traffic_words(traffic: Mapping[str, Any]) -> list[str]:
    return [
        f"{theme.count(traffic.get('requests'))} requests, {theme.duration(traffic.get('span_s'))}",
        f"{theme.rate(traffic.get('mean_rate'))} mean, {theme.rate(traffic.get('peak_rate'))} peak",
        f"{theme.exact(traffic.get('mean_input_tokens'))} in, "
        f"{theme.exact(traffic.get('mean_output_tokens'))} out (mean)",
    ]


def _profile_words(profile: Mapping[str, Any]) -> list[str]:
    model = " ".join(str(profile[key]) for key in ("model", "precision") if profile.get(key))
    cards = f"{profile.get('count') or 1}×{profile['accelerator']}" if profile.get("accelerator") else ""
    instance = str(profile.get("instance") or "")
    where = f"{cards} ({instance})" if cards and instance else cards or instance
    points = str(profile.get("measured") or "")
    points = points if "stated" in points or "measured" in points or not points else f"measured {points}"
    return [part for part in (model, str(profile.get("engine") or ""), where, points) if part]


def _fleet_words(fleet: Mapping[str, Any]) -> list[str]:
    region, client = fleet.get("region"), fleet.get("client_region")
    network = {None: "no network", "none": "no network", "public": "public network"}.get(
        fleet.get("network"), fleet.get("network")
    )
    far = f" ({theme.seconds(fleet['round_trip_s'])} round trip)" if fleet.get("round_trip_s") else ""
    return [
        part
        for part in (
            ("chosen: " if fleet.get("chosen") else "") + theme.plural(int(fleet.get("replicas") or 0), "replica"),
            str(fleet.get("routing") or ""),
            ", ".join(str(part) for part in (region, fleet.get("purchase")) if part),
            f"users in {client}{far}" if client and client != region else "",
            str(network),
        )
        if part
    ]


def verdict(result: Result) -> str:
    """Return the thresholds in one sentence: `1 of 3 thresholds crossed, 1 undecided`."""
    found = [row["verdict"] for row in result.get("thresholds") or ()]
    crossed, undecided = found.count("crossed"), found.count("undecided")
    if not found:
        return "No threshold was set"
    of = f"{len(found)} thresholds" if len(found) > 1 else "1 threshold"
    if crossed:
        return f"{crossed} of {of} crossed" + (f", {undecided} undecided" if undecided else "")
    if undecided:
        return f"{undecided} of {of} undecided, none crossed"
    return f"All {of} hold" if len(found) > 1 else "The threshold holds"


def exit_meaning(result: Result) -> str:
    """Return why the run exits as it does: `1 crossed, 1 undecided`."""
    found = [row["verdict"] for row in result.get("thresholds") or ()]
    words = [f"{found.count(name)} {name}" for name in ("crossed", "undecided") if name in found]
    return ", ".join(words) or ("all thresholds hold" if found else EXIT_WITHOUT_THRESHOLDS)


def measured(result: Result, name: str) -> str:
    """Return the metric *name* as text, a dash when it has no value."""
    found = result.get("metrics", {}).get(name)
    if not found:
        return theme.MISSING
    return theme.metric(found["value"], found["unit"], found.get("low"), found.get("high"))


def bounds(row: Mapping[str, Any] | None, *, unit: bool = False) -> str:
    """Return the interval of a metric or threshold *row*, empty when it has none."""
    if not row or row.get("value") is None or row.get("low") is None:
        return ""
    form = theme.format_of(row["unit"])
    if row.get("high") is None:  # it reaches the requests that never ended
        return f"{form(row['low'])} or more"
    return theme.interval(row["low"], row["high"], form, unit=unit)


def threshold_value(row: Mapping[str, Any]) -> str:
    """Return the measured side of a threshold *row*."""
    return theme.metric(row["value"], row["unit"], row.get("low"), row.get("high"))


def threshold_remark(result: Result, row: Mapping[str, Any]) -> str:
    """Return what the numbers of a threshold *row* do not say: the verdict in a word and its reason."""
    default = "default" if row.get("default") else ""
    if row["value"] is None:
        note = result.get("metrics", {}).get(row["metric"], {}).get("note") or "no value"
        return ", ".join(word for word in (f"{row['verdict']}: {note}", default) if word)
    undecided = "undecided: interval straddles the limit"
    words = {"holds": "", "crossed": "crossed", "undecided": undecided}
    return ", ".join(word for word in (words[row["verdict"]], default) if word)


def missing_notes(result: Result) -> list[str]:
    """Return why percentiles of the latency table have no value: `p99.9 of ttft, e2e: needs 1,000 samples, …`."""
    metrics = result.get("metrics") or {}
    found: dict[tuple[str, str], list[str]] = {}  # note, its percentiles -> their latencies
    for kind in theme.METRIC_WORDS:
        notes: dict[str, list[str]] = {}
        for p in PERCENTILES:
            metric = metrics.get(f"{p}({kind})")
            if metric and metric["value"] is None:
                notes.setdefault(metric.get("note") or "no value", []).append(p)
        for note, missing in notes.items():
            which = "all" if len(missing) == len(PERCENTILES) else ", ".join(missing)
            found.setdefault((note, which), []).append(kind)
    return [f"{which} of {', '.join(kinds)}: {note}" for (note, which), kinds in found.items()]


def grades(result: Result) -> str:
    """Return the service-level grades: `first token excellent (p50), good (p99) · …`."""
    grouped: dict[str, list[str]] = {}
    for name, grade in (result.get("grades") or {}).items():
        statistic, _, kind = name.rstrip(")").partition("(")
        grouped.setdefault(theme.METRIC_WORDS.get(kind, kind), []).append(f"{grade} ({statistic})")
    return " · ".join(f"{words} {', '.join(parts)}" for words, parts in grouped.items())


def basis(result: Result) -> str:
    """Return the shares of busy time by how well the speed is known: `measured 0 %, modelled 98 %, …`."""
    shares = result.get("busy_basis") or {}
    if not any(shares.values()):
        return ""
    always = () if shares.get("stated") else ("measured", "modelled", "unmeasured")
    text = {"stated": "stated by the profile", "prompt only": "prompts only"}
    order = ("measured", "stated", "modelled", "unmeasured", "prompt only")
    return ", ".join(
        f"{text.get(key, key)} {theme.percent(shares[key])}"
        for key in order
        if key in shares and (key in always or shares[key])
    )


def cost_per_mtok(result: Result) -> str:
    """Return `$1.03`, the dollars per million completed output tokens without their unit, or a dash."""
    cost = result.get("metrics", {}).get("cost") or {}
    return theme.dollars(cost.get("value"), theme.supported_digits(cost.get("low"), cost.get("high")))


def no_cost_reason(result: Result) -> str:
    """Return why there is no cost per token, empty when there is one."""
    cost = result.get("metrics", {}).get("cost") or {}
    return "" if cost.get("value") is not None else cost.get("note") or "no output token was completed"


def level(result: Result) -> str:
    """Return the level of the intervals, `95 %`."""
    found = (row.get("level") for row in (result.get("metrics") or {}).values())
    return theme.percent(next((value for value in found if value), 0.95))

"""What things cost: dated list prices, and the few that have to be inferred from another region's.

EC2 on demand is known for us-east-1; elsewhere it is that price times the region's multiplier, which was computed for
g6 and g6e and is carried over to the other families. Every Price says its date, its source and whether it was inferred.
Left out: purchase options, SageMaker's own prices, load balancers, storage, taxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from fleetcast.errors import ScenarioError, suggest
from fleetcast.profiles import hardware
from fleetcast.profiles.sheet import read_sheet

if TYPE_CHECKING:
    from fleetcast.profiles.profile import Point, Profile

HOME = "us-east-1"


@dataclass(frozen=True)
class Price:
    """US dollars a unit ("h", "GB"), as of a date; *inferred* where nobody stated it for this very case."""

    usd: float
    unit: str
    date: str
    source: str
    inferred: bool


@cache
def multipliers() -> dict[str, float]:
    """Return the on-demand price relative to us-east-1 of every region where it is known."""
    rows = read_sheet("region_multiplier").rows
    return {row["region"]: float(row["multiplier"]) for row in rows if row["multiplier"]}


def regions() -> tuple[str, ...]:
    """Return every region the tool knows, sorted; some have no multiplier, so no instance price."""
    return tuple(row["region"] for row in read_sheet("region_multiplier").rows)


def known_region(region: str) -> str:
    """Return *region*; ScenarioError with the nearest names where the tool does not know it."""
    if region not in regions():
        raise ScenarioError(f'unknown region "{region}"', why=suggest(region, regions()))
    return region


@cache
def _home_prices() -> dict[str, float]:
    return {row["instance"]: float(row["usd_per_hour"]) for row in read_sheet("on_demand").rows}


def priced_instances() -> tuple[str, ...]:
    """Return the instances that have an on-demand price, sorted."""
    return tuple(sorted(_home_prices()))


def on_demand(instance: str, region: str = HOME) -> Price:
    """Return what an hour of *instance* costs in *region*.

    ScenarioError where the instance or the region is unknown, or where no multiplier leads from us-east-1 to it.
    """
    known_region(region)
    home = _home_prices()
    if instance not in home:
        if instance.startswith("ml.") or instance not in hardware.instances():
            hardware.instance(instance)  # says why this name is not one
        why = f"the price sheet of {read_sheet('on_demand').head['date']} does not list it in {HOME}"
        raise ScenarioError(f"no on-demand price is known for {instance}", why=why)
    sheet = read_sheet("on_demand").head
    if region == HOME:
        return Price(home[instance], "h", sheet["date"], sheet["source"], inferred=False)
    source = f"{HOME} x {_multiplier(region, f'{instance} in {region}'):g}: {sheet['source']}; {_multiplier_source()}"
    return Price(home[instance] * multipliers()[region], "h", sheet["date"], source, inferred=True)


def _multiplier(region: str, what: str) -> float:
    if region not in multipliers():
        why = (
            f"a price elsewhere than {HOME} is that price times the region's multiplier, and none is known for {region}"
        )
        fix = f"regions that have one: {', '.join(sorted(multipliers()))}"
        raise ScenarioError(f"no price is known for {what}", why=why, fix=fix)
    return multipliers()[region]


def _multiplier_source() -> str:
    head = read_sheet("region_multiplier").head
    return f"multiplier of {head['date']} from {head['source']}"


def endpoint_hour(region: str) -> Price:
    """Return what a PrivateLink interface endpoint costs an hour in one Availability Zone of *region*.

    Where the region's own price is not known, us-east-1's stands in for it, marked inferred: the hours of an endpoint
    differ by fractions of a cent.
    """
    known_region(region)
    head, rows = _network("endpoint_hour")
    for row in rows:
        if row["region"] == region:
            return _price(row, "h", head)
    home = next(row for row in rows if row["region"] == HOME)
    return Price(
        float(home["usd"]), "h", head, f"{HOME}'s, {region}'s own is not known: {home['source']}", inferred=True
    )


def endpoint_gb(month_gb: float = 0.0) -> Price:
    """Return what one more GB through an endpoint costs once *month_gb* went through it this month."""
    head, rows = _network("endpoint_gb")
    tier = max((row for row in rows if float(row["from_gb"]) <= month_gb), key=lambda row: float(row["from_gb"]))
    return _price(tier, "GB", head)


def inter_region_gb(src: str, dst: str) -> Price:
    """Return what a GB sent from region *src* to region *dst* costs; 0 within a region.

    Where the source region's price is not known it is us-east-1's times the multiplier; ScenarioError without one.
    """
    known_region(src)
    known_region(dst)
    head, rows = _network("inter_region_gb")
    if src == dst:
        return Price(0.0, "GB", head, "no transfer between regions", inferred=False)
    mine = [row for row in rows if row["region"] == src]
    for row in sorted(mine, key=lambda row: row["to"] != dst):
        if row["to"] in (dst, ""):
            return _price(row, "GB", head)
    home = next(row for row in rows if row["region"] == HOME and not row["to"])
    factor = _multiplier(src, f"traffic out of {src}")
    return Price(float(home["usd"]) * factor, "GB", head, f"{HOME} x {factor:g}: {home['source']}", inferred=True)


def _network(item: str) -> tuple[str, list[dict[str, str]]]:
    sheet = read_sheet("network")
    return sheet.head["date"], [dict(row) for row in sheet.rows if row["item"] == item]


def _price(row: dict[str, str], unit: str, date: str) -> Price:
    return Price(float(row["usd"]), unit, date, row["source"], inferred=row["inferred"] == "yes")


def usd_per_million_output_tokens(profile: Profile, point: Point, region: str = HOME) -> float | None:
    """Return what a million output tokens cost while *point* lasts: the whole instance, on demand, never idle.

    None where the point has no throughput; ScenarioError where the instance has no price in *region*.
    """
    if point.output_tps is None:
        return None
    return on_demand(profile.hardware.instance, region).usd / 3_600.0 / point.output_tps * 1e6

"""`simulate prices`: the dated price sheet, with what was inferred from another region marked."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fleetcast.cli.profile import Format, FormatOption, console, indented, plain_table, print_json

if TYPE_CHECKING:
    from fleetcast.profiles.prices import Price

app = typer.Typer(no_args_is_help=True, help="Prices the bill is made of, with their dates and sources.")


@app.callback()
def _group() -> None:
    """Keep `show` a sub-command, though it is the only one."""


@app.command("show")
def show_prices(
    instance: Annotated[str | None, typer.Option(help="Only this EC2 instance, as g6e.xlarge.")] = None,
    region: Annotated[str | None, typer.Option(help="Only this region, as ap-northeast-2.")] = None,
    format: FormatOption = Format.table,
) -> None:
    """Show on-demand prices: every instance of a region, one instance in every region, or one price."""
    from fleetcast.profiles import prices

    where = [prices.known_region(region)] if region else [prices.HOME]
    if instance and not region:
        where = sorted(prices.multipliers())
    names = [instance] if instance else list(prices.priced_instances())
    rows = [_row(name, place) for name in names for place in where]
    network = [] if instance and not region else _network(where[0])
    if format is Format.json:
        print_json({"schema": 1, "on_demand": rows, "network": network})
    else:
        _show(rows, network)


def _row(instance: str, region: str) -> dict[str, Any]:
    from fleetcast.profiles import hardware, prices

    price = prices.on_demand(instance, region)
    size = hardware.instances().get(instance)
    offered = region in size.regions if size is not None and size.regions else None
    found: dict[str, Any] = {"instance": instance, "region": region, "offered": offered}
    if size is not None:
        found |= {"accelerator": size.accelerator, "count": size.count, "offered_as_of": size.regions_date}
    return found | asdict(price)


def _network(region: str) -> list[dict[str, Any]]:
    from fleetcast.errors import ScenarioError
    from fleetcast.profiles import prices

    away = "us-east-2" if region != "us-east-2" else "us-west-2"

    def line(item: str, price: Price) -> dict[str, Any]:
        return {"item": item} | asdict(price)

    found = [line(f"PrivateLink endpoint, one zone of {region}", prices.endpoint_hour(region))]
    tiers = ((0.0, "first PB of a month"), (1e6, "next 4 PB"), (5e6, "above 5 PB"))
    found += [line(f"PrivateLink data, {words}", prices.endpoint_gb(gb)) for gb, words in tiers]
    with contextlib.suppress(ScenarioError):  # no multiplier leads there: not known, so not listed
        found.append(line(f"transfer out of {region} (to {away})", prices.inter_region_gb(region, away)))
    return found


def _show(rows: list[dict[str, Any]], network: list[dict[str, Any]]) -> None:
    from fleetcast.reports import theme

    out = console()
    table = plain_table("instance", "accelerator", "region", "$/h>", "", "offered there")
    for row in rows:
        what = f"{row['count']:g} × {row['accelerator']}" if "count" in row else ""
        offered = {True: "yes", False: "no", None: "not known"}[row["offered"]]
        inferred = "inferred" if row["inferred"] else ""
        table.add_row(row["instance"], what, row["region"], theme.price(row["usd"]), inferred, offered)
    out.print(table)
    if network:
        table = plain_table("network", "$>", "per", "")
        for row in network:
            mark = "inferred" if row["inferred"] else ""
            table.add_row(row["item"], theme.price(row["usd"]), row["unit"], mark)
        out.print()
        out.print(table)
    out.print("\nSOURCES", style="bold")
    for date, source in sorted({(row["date"], _stem(row["source"])) for row in (*rows, *network)}):
        indented(out, f"{date}  {source}")
    if any(row.get("offered_as_of") for row in rows):
        dates = sorted({row["offered_as_of"] for row in rows if row.get("offered_as_of")})
        indented(out, f"{', '.join(dates)}  regions in which an instance is offered")


def _stem(source: str) -> str:
    """Drop the multiplier of one region from a source, so that the same source is listed once."""
    _, sign, rest = source.partition(" x ")
    return f"us-east-1 x multiplier: {rest.partition(': ')[2]}" if sign else source

"""`simulate profile calibrate`: a step model from a profile's points, by replaying them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetcast.cli.profile import Format, FormatOption, app, console, indented, plain_table, print_json
from fleetcast.errors import ScenarioError

if TYPE_CHECKING:
    from fleetcast.profiles.profile import Profile
    from fleetcast.sim.calibration.fit import Fit


@app.command("calibrate")
def calibrate(
    profile: Annotated[str, typer.Argument(metavar="IN", help="A profile with points: a name or a TOML file.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="The calibrated profile.")] = None,
    format: FormatOption = Format.table,
) -> None:
    """Fit the step model that gives the points back when they are replayed, and store it with its uncertainty.

    What the profile only assumes of its engine (policy, max_num_seqs) is searched for.
    """
    from fleetcast.profiles.read import load_profile
    from fleetcast.profiles.write import write_profile
    from fleetcast.sim.calibration.profile import calibrate_profile
    from fleetcast.sim.kernel import is_compiled

    loaded = load_profile(profile)
    if out is not None and out.suffix != ".toml":
        raise ScenarioError(f"-o {out}", why="a profile is a TOML file", fix=f"write -o {out.with_suffix('.toml')}")
    if not is_compiled():
        print("compiling the engine, once: about 20 s", file=sys.stderr)
    calibrated, fit = calibrate_profile(loaded.profile)
    if out is not None:
        write_profile(calibrated, out, [f"calibrated on the {len(fit.benches)} points of {loaded.path}"])
        print(f"wrote {out}", file=sys.stderr)
    if format is Format.json:
        step = calibrated.step
        assert step is not None
        dump = step.model_dump(by_alias=True, exclude_none=True)
        dump["mixing"] = "max" if step.mixing == float("inf") else step.mixing
        tried = [{"engine": one.label, "objective": one.objective} for one in fit.tried]
        print_json({"schema": 1, "profile": loaded.path, "step": dump, "tried": tried})
        return
    _show(calibrated, fit)


def _show(profile: Profile, fit: Fit) -> None:
    from statistics import median

    from fleetcast.profiles.curve import curve_of
    from fleetcast.reports import theme

    out, curve, step = console(), curve_of(profile), profile.step
    assert step is not None
    out.print(f"{profile.name}: calibrated on {len(fit.benches)} points, {len(fit.residuals)} figures")
    for text in step.found:
        out.print(f"  {text}")
    table = plain_table("batch>", "step>", "90 % of draws>", "")
    for at, batch in enumerate(curve.central.batch):
        low, high = theme.seconds(float(curve.fast.time_s[at])), theme.seconds(float(curve.slow.time_s[at]))
        table.add_row(str(batch), theme.seconds(float(curve.central.time_s[at])), f"{low} – {high}", curve.basis[at])
    indented(out, table)
    mixing = "max" if step.mixing == float("inf") else f"{step.mixing:.3g}"
    out.print(
        f"  prompt {theme.seconds(step.prefill_fixed)} + {theme.seconds(step.prefill_per_token)} a token, "
        f"mixing {mixing}, overhead {theme.seconds(step.request_overhead)}, noise {step.noise_cv:.1%}"
    )
    table = plain_table("given back", "median error>", "worst>", "of")
    for metric in ("ttft", "tpot", "itl", "e2e", "output_tps", "request_rate", "latency"):
        rows = [row for row in fit.residuals if row.metric == metric and row.statistic in ("mean", "p50")]
        if rows:
            worst = max(rows, key=lambda row: abs(row.error))
            middle = median(abs(row.error) for row in rows)
            table.add_row(metric, f"{middle:.1%}", f"{worst.error:+.1%}", worst.bench)
    indented(out, table)

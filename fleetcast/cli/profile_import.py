"""`simulate profile import`: a profile from the result files of benchmark tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fleetcast.cli.profile import app
from fleetcast.errors import ScenarioError

Sources = Annotated[list[str], typer.Argument(metavar="FILES|DIRS…", help="What benchmarks wrote: JSON, CSV, folders.")]


@app.command("import")
def import_profile(
    sources: Sources,
    name: Annotated[str | None, typer.Option(help="Name of the profile; left out: the output file's.")] = None,
    instance: Annotated[str | None, typer.Option(help="EC2 instance it ran on: g6e.xlarge.")] = None,
    precision: Annotated[str | None, typer.Option(help="int8, fp8, fp16, …")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Left out: to stdout.")] = None,
    model: Annotated[str | None, typer.Option(help="The model's name, where files do not tell or misname it.")] = None,
    parameters: Annotated[str | None, typer.Option(help="Its parameters: 8e9.")] = None,
    active_parameters: Annotated[str | None, typer.Option(help="What one token uses of a mixture: 3e9.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="For a machine that is no known instance.")] = None,
    count: Annotated[int | None, typer.Option(help="Accelerators used; left out: all of the instance.")] = None,
    engine: Annotated[str | None, typer.Option(help="vLLM, SGLang, …")] = None,
    engine_version: Annotated[str | None, typer.Option(help="Its version.")] = None,
    policy: Annotated[str | None, typer.Option(help="chunked, prefill-first, static, dynamic or no-evict.")] = None,
    max_num_seqs: Annotated[int | None, typer.Option(min=1, help="Most sequences the engine runs at once.")] = None,
    max_batched_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an iteration.")] = None,
    max_context: Annotated[int | None, typer.Option(min=1, help="Longest prompt and answer together.")] = None,
    title: Annotated[str | None, typer.Option(help="What the profile cites as its source.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only runs that say so: max_num_seqs=4.")
    ] = None,
    fill: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="What no file says: output_tokens=128.")
    ] = None,
    from_name: Annotated[
        str | None, typer.Option(metavar="PATTERN", help='What the paths say: "c{concurrency}/".')
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="KEY=COLUMN[:UNIT]", help="Columns of a table of no known tool.")
    ] = None,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Import in spite of this severe finding.")
    ] = None,
) -> None:
    """Make a profile of benchmark results: every run becomes a point, and what cannot be true stops it.

    Read are AIPerf, GenAI-Perf, GuideLLM, vLLM, SGLang, InferenceX, inference-perf, llmperf, trtllm-bench,
    perf_analyzer, SageMaker Inference Recommender and tables (--columns). Repeats of a load stay apart, a point each.
    """
    from fleetcast.profiles.ingest import gather, merge, table
    from fleetcast.profiles.write import to_toml, write_profile

    if name is None and out is None:
        raise ScenarioError("--name is missing", fix="add --name my-model, or -o my-model.toml")
    system = merge.System(
        name=name or (out.stem if out else ""),
        instance=instance,
        accelerator=accelerator,
        count=count,
        model=model,
        precision=precision,
        parameters=_number("--parameters", parameters),
        active_parameters=_number("--active-parameters", active_parameters),
        engine=engine,
        engine_version=engine_version,
        policy=policy,
        max_num_seqs=max_num_seqs,
        max_batched_tokens=max_batched_tokens,
        max_context=max_context,
        title=title,
    )
    hints = gather.Hints(
        gather.parse_fill(fill or []), gather.parse_pattern(from_name), table.parse_columns(columns or [])
    )
    found = merge.import_profile(sources, system, hints, gather.parse_where(where or []), frozenset(accept or []))
    for note in found.notes:
        print(note, file=sys.stderr)
    for finding in found.findings:
        if finding.severity != "info":
            print(f"{finding.severity}: {finding.where}: {finding.what} [{finding.code}]", file=sys.stderr)
    if out is None:
        print(to_toml(found.profile), end="")
        return
    write_profile(found.profile, out)
    from fleetcast.reports import theme

    points = theme.plural(len(found.profile.point), "point")
    print(f"{out}: {points} from {', '.join(found.tools)}", file=sys.stderr)


def _number(flag: str, text: str | None) -> float | None:
    """Return a count of parameters, as `8e9` or `8B`."""
    if text is None:
        return None
    plain = text.strip().replace("_", "")
    scale = {"B": 1e9, "M": 1e6}.get(plain[-1:].upper(), 1.0)
    try:
        value = float(plain if scale == 1.0 else plain[:-1]) * scale
    except ValueError:
        value = 0.0
    if not 0 < value < 1e15:
        raise ScenarioError(f"{flag} {text}", why="this is not a number of parameters", fix=f"write {flag} 8e9")
    return value

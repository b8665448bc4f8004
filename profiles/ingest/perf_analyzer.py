"""Triton perf_analyzer: a CSV with a row a concurrency or rate, times in microseconds.

It measures inferences of any model and counts no tokens. Where one inference is known to be one answer of so many
tokens, saying so (`output_tokens`) makes points of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, open_loop, some

NAME = "perf_analyzer"
KNOWN = "the CSV of perf_analyzer 2"
LOADS = ("Concurrency", "Request Rate")


def recognises(document: Document) -> bool:
    """Whether perf_analyzer wrote this: its load and its inferences a second."""
    return document.header[:1] in [(load,) for load in LOADS] and "Inferences/Second" in document.header


def runs(document: Document) -> Iterator[Run]:
    """Read every row; without a length of answers it is no point of a language model, which `merge` says."""
    kind = document.header[0]
    for number, row in enumerate(document.objects, 2):
        where = f"{document.path}:{number}"
        at = v.positive(row.get(kind), f"{where}: {kind}")
        stats = {
            name.removesuffix(" latency").lower(): row.get(name)
            for name in document.header
            if name.endswith(" latency")
        }
        if at is None:
            raise DataError(f"{where}: {kind} is missing", why=f"read is {KNOWN}")
        load = closed(max(1, round(at))) if kind == LOADS[0] else open_loop(at, None)
        figures = some(
            request_throughput=v.positive(row.get("Inferences/Second"), f"{where}: Inferences/Second"),
            e2e=v.named(stats, v.STATISTICS, 1e-6, f"{where}: latency"),
        )
        yield Run(document.path, document.sha256, NAME, "2", load, figures, place=f":{number}")

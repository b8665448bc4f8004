"""The files of a result: written whole or not at all (a temporary name in the same folder, then a rename).

`requests.parquet` has one row per request of the kept runs, on the client's clock unless a name says server;
`timeline.parquet` one row per sample of every run.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fleetcast.errors import DataError
from fleetcast.sim.lifecycle import STATUSES
from fleetcast.sim.replicate import Day, Requests

RESULTS, REQUESTS, TIMELINE = "results.json", "requests.parquet", "timeline.parquet"
REPORT = "report.html"
FILES = (RESULTS, REQUESTS, TIMELINE, REPORT)


def as_json(data: dict[str, Any]) -> str:
    """Return a result as JSON text, keys in their order, one line at the end."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


class OutputFolder:
    """Files of one run on their way into a folder; `commit` moves them in, all together, when they are complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._created = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.temporary = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder))
        except (OSError, ValueError) as error:
            self._leave()
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            fix = "name a folder that can be written"
            raise DataError(f"--out {folder} cannot be written", why=reason, fix=fix) from None
        self._requests: pq.ParquetWriter | None = None
        self._timeline: pq.ParquetWriter | None = None

    def add(self, day: Day, region: str) -> None:
        """Append one run's requests (where they were kept) and its timeline."""
        if day.requests is not None:
            table = request_table(day.run, day.requests, region)
            self._requests = self._requests or self._writer(REQUESTS, table.schema)
            self._requests.write_table(table)
        table = timeline_table(day)
        self._timeline = self._timeline or self._writer(TIMELINE, table.schema)
        self._timeline.write_table(table)

    def _writer(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        return pq.ParquetWriter(self.temporary / name, schema, compression="zstd", compression_level=1)

    def write(self, name: str, text: str) -> None:
        """Write one text file."""
        (self.temporary / name).write_text(text, encoding="utf-8")

    def path(self, name: str) -> Path:
        """Return where a file is to be written before `commit`."""
        return self.temporary / name

    def commit(self) -> None:
        """Move the complete files into the folder, and take away what an earlier run left that this one has not."""
        self._close()
        for name in FILES:
            if (self.folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{self.folder / name} is a folder")
        for name in FILES:
            if (self.temporary / name).exists():
                os.replace(self.temporary / name, self.folder / name)
            else:
                (self.folder / name).unlink(missing_ok=True)
        self.temporary.rmdir()

    def discard(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError, pa.ArrowException):  # where the disk is full, a table cannot be ended either
            self._close()
        shutil.rmtree(self.temporary, ignore_errors=True)
        self._leave()

    def _leave(self) -> None:
        """Take away the folders that were made for this, innermost first."""
        for folder in self._created:
            with suppress(OSError, ValueError):
                folder.rmdir()

    def _close(self) -> None:
        for writer in (self._requests, self._timeline):
            if writer is not None:
                writer.close()


@contextmanager
def output_folder(folder: Path) -> Iterator[OutputFolder]:
    """Collect files for *folder*; they arrive there only if the block ends well."""
    output = OutputFolder(folder)
    try:
        yield output
        output.commit()
    except BaseException as error:
        output.discard()
        if isinstance(error, OSError):
            raise DataError(f"--out {folder} cannot be written", why=error.strerror or str(error)) from None
        raise


def request_table(run: int, requests: Requests, region: str) -> pa.Table:
    """Return one run's requests as the columns of `requests.parquet`."""
    trace = requests.trace
    n = len(trace)

    def names(codes: Any, values: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values)).cast(pa.string())

    def seconds(values: Any) -> pa.Array:
        return pa.array(values, pa.float64(), mask=np.isnan(values))

    rejected = requests.replica < 0
    return pa.table({
        "run": pa.array(np.full(n, run, np.int32)),
        "request": pa.array(np.arange(n, dtype=np.int64)),
        "region": names(np.zeros(n, np.int8), (region,)),
        "replica": pa.array(requests.replica, pa.int32(), mask=rejected),
        "status": names(requests.status, STATUSES),
        "attempts": pa.array(np.ones(n, np.int32)),
        "preemptions": pa.array(requests.preemptions, pa.int32()),
        "arrival_s": pa.array(trace.arrival_s),
        "server_arrival_s": pa.array(requests.server_arrival_s),
        "first_token_s": seconds(requests.first_token_s),
        "finish_s": seconds(requests.finish_s),
        "ttft_s": seconds(requests.ttft_s),
        "tpot_s": seconds(requests.tpot_s),
        "e2e_s": seconds(requests.e2e_s),
        "input_tokens": pa.array(trace.input_tokens, pa.int32()),
        "output_tokens": pa.array(trace.output_tokens, pa.int32()),
    })  # fmt: skip


def timeline_table(day: Day) -> pa.Table:
    """Return one run's samples as the columns of `timeline.parquet`."""
    line = day.timeline
    return pa.table({
        "run": pa.array(np.full(len(line.t_s), day.run, np.int32)),
        "t_s": pa.array(line.t_s),
        "arrivals": pa.array(line.arrivals),
        "running": pa.array(line.running),
        "waiting": pa.array(line.waiting),
        "kv_use": pa.array(line.kv_use, pa.float64(), mask=np.isnan(line.kv_use)),
        "busy": pa.array(line.busy),
        "replicas": pa.array(line.replicas, pa.int64()),
    })  # fmt: skip

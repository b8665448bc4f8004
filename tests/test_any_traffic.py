"""The main job takes traffic of any kind: counts with a length model, folders of captured requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetcast.cli.simulate import run
from fleetcast.errors import DataError


def _play(capsys: pytest.CaptureFixture[str], traffic: Path, *settings: str) -> dict[str, object]:
    flags = {"profile": "g6e-int8", "traffic.file": str(traffic), "fleet.replicas": 1, "runs": 2, "format": "json"}
    run(None, flags, [f"traffic.file={traffic}", *settings], [])
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_counts_per_minute_with_a_preset_of_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "counts.csv"
    rows = [f"2026-03-02 00:{minute:02}:00,{30 + minute}" for minute in range(60)]
    file.write_text("timestamp,value\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match="counts"):
        _play(capsys, file)
    read = ["traffic.read.lengths=chat", "traffic.read.values=count", "engine.max_context=200000"]
    data = _play(capsys, file, *read)
    assert data["summary"]["traffic"]["requests"] == sum(30 + minute for minute in range(60))  # type: ignore[index]
    assert data["scenario"]["traffic"]["read"] == {"lengths": "chat", "values": "count"}  # type: ignore[index]


def test_a_folder_of_captured_requests_has_one_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hour = tmp_path / "capture" / "endpoint" / "AllTraffic" / "2026" / "03" / "02" / "10"
    hour.mkdir(parents=True)
    lines = []
    for second in range(40):
        usage = json.dumps({"usage": {"prompt_tokens": 20 + second, "completion_tokens": 5}})
        lines.append(json.dumps({
            "captureData": {
                "endpointInput": {"data": "{}", "encoding": "JSON"},
                "endpointOutput": {"data": usage, "encoding": "JSON"},
            },
            "eventMetadata": {"eventId": str(second), "inferenceTime": f"2026-03-02T10:00:{second:02}Z"},
        }))  # fmt: skip
    (hour / "00-00.jsonl").write_text("\n".join(lines) + "\n")
    data = _play(capsys, tmp_path / "capture")
    again = _play(capsys, tmp_path / "capture")
    assert data == again
    traffic = next(row for row in data["inputs"] if row["role"] == "traffic")  # type: ignore[attr-defined]
    assert len(traffic["sha256"]) == 64
    assert data["summary"]["traffic"]["requests"] == 40  # type: ignore[index]

"""What other tools record, read without options: own small files in the shape of theirs, and the published ones."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fleetcast.errors import DataError, FleetcastError, ScenarioError
from fleetcast.traffic.lengths import preset
from fleetcast.traffic.read import Options, Reading, read_trace, read_traffic
from fleetcast.traffic.read.report import as_json
from fleetcast.traffic.write import write_trace

Write = Callable[..., Path]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "traffic") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def names(reading: Reading, key: str) -> list[str | None]:
    assert reading.trace is not None
    column = reading.trace.labels[key]
    return [column.names[code] if code >= 0 else None for code in column.codes]


# --- request logs ----------------------------------------------------------------------------------------------------


def test_burstgpt_one_has_whole_seconds_failures_and_rows_that_repeat(file: Write) -> None:
    rows = ["5,ChatGPT,472,18,490,Conversation log"] * 2 + ["45,GPT-4,1087,0,1087,API log", "118,GPT-4,7,9,16,API log"]
    header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    reading = read_traffic(file("\n".join([header, *rows])))
    report, trace = reading.report, reading.trace
    assert trace is not None
    assert (report.format, report.read, report.kept) == ("BurstGPT 1 or 2 CSV", 4, 3)
    assert report.dropped == {"without output (failed or cancelled)": 1}
    assert report.duplicates == 1
    assert trace.arrival_s.tolist() == [5.0, 5.0, 118.0]
    assert names(reading, "model") == ["ChatGPT", "ChatGPT", "GPT-4"]
    assert names(reading, "tenant") == ["Conversation log", "Conversation log", "API log"]
    kept = read_trace(file("\n".join([header, *rows])), failures="keep")
    assert kept.output_tokens.tolist() == [18, 18, 1, 9]


def test_burstgpt_three_has_sessions_and_starts_on_a_later_day(file: Write) -> None:
    header = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
    text = f"{header}\n19440110.0,,3.5,ChatGPT,10,20,30,API log\n19440111.5,s1,2,GPT-4,11,21,32,Conversation log\n"
    reading = read_traffic(file(text))
    assert reading.trace is not None
    assert reading.trace.arrival_s.tolist() == [110.0, 111.5]  # 225 whole days taken off
    assert names(reading, "session") == [None, "s1"]
    assert reading.trace.input_tokens.tolist() == [10, 11]


def mooncake(ticks: int = 200) -> str:
    """Requests stamped every 3 s, give or take a millisecond, as the conversation trace is; hash blocks of 512."""
    rng = np.random.default_rng(3)
    lines = []
    for tick in range(ticks):
        stamp = 3_000 * tick + tick % 2
        for size in rng.integers(1, 2_000, rng.poisson(10)).tolist():
            ids = [46, *rng.integers(100, 999, -(-size // 512) - 1).tolist()]
            lines.append(json.dumps({"timestamp": stamp, "input_length": size, "output_length": 5, "hash_ids": ids}))
    return "\n".join(lines) + "\n"


def test_mooncake_ticks_are_found_and_spread_and_blocks_kept(file: Write, tmp_path: Path) -> None:
    path = file(mooncake())
    reading = read_traffic(path)
    trace = reading.trace
    assert trace is not None
    assert reading.report.tick_s == pytest.approx(3.0, abs=0.01)
    assert reading.report.spread_in_tick
    assert any("ticks of 3 s: arrivals spread" in note for note in trace.notes)
    assert len(np.unique(trace.arrival_s)) > 0.99 * len(trace)
    raw = read_trace(path, spread_ticks=False)
    assert np.all(trace.arrival_s - raw.arrival_s < 3.01)
    assert np.all(trace.arrival_s >= raw.arrival_s)
    assert trace.span_s == raw.span_s
    assert any("ticks of 3 s: kept as written" in note for note in raw.notes)
    assert trace.blocks is not None
    assert trace.blocks.tokens == 512
    assert np.array_equal(np.diff(trace.blocks.offsets), -(-trace.input_tokens // 512))
    assert set(names(reading, "prefix")) == {"46"}
    write_trace(trace, tmp_path / "out.parquet")
    back = read_trace(tmp_path / "out.parquet")
    assert back.blocks is not None
    assert np.array_equal(back.blocks.ids, trace.blocks.ids)
    assert back.blocks.tokens == 512
    assert np.array_equal(back.arrival_s, trace.arrival_s)


def test_spreading_keeps_the_order_of_rows_and_the_same_seed_the_same_times(file: Write) -> None:
    lines = [json.dumps({"timestamp": 1_000 * (k // 4), "input_length": k, "output_length": 1}) for k in range(400)]
    path = file("\n".join(lines))
    one, two, other = read_trace(path), read_trace(path), read_trace(path, seed=1)
    assert one.input_tokens.tolist() == list(range(400))
    assert np.array_equal(one.arrival_s, two.arrival_s)
    assert not np.array_equal(one.arrival_s, other.arrival_s)


def test_bailian_counts_seconds_and_knows_the_conversation(file: Write) -> None:
    keys = ("chat_id", "parent_chat_id", "timestamp", "input_length", "output_length", "type", "turn", "hash_ids")
    values = [
        (0, -1, 0.061, 40, 4, "text", 1, [1, 2, 3]),
        (1, -1, 0.5, 10, 4, "search", 1, [9]),
        (2, 0, 9.25, 60, 4, "text", 2, [1, 2, 3, 7]),
    ]
    rows = [dict(zip(keys, row, strict=True)) for row in values]
    reading = read_traffic(file("\n".join(map(json.dumps, rows))))
    assert reading.trace is not None
    assert reading.trace.arrival_s.tolist() == [0.061, 0.5, 9.25]
    assert names(reading, "session") == ["0", "1", "0"]
    assert reading.trace.labels["turn"].codes.tolist() == [1, 1, 2]
    assert reading.trace.blocks is not None
    assert (reading.trace.blocks.tokens, reading.trace.blocks.ids.tolist()) == (16, [1, 2, 3, 9, 1, 2, 3, 7])


def rag(stamp: int, session: str = "s", sys_prompt: int = 8) -> str:
    ids = {"sys_prompt": [sys_prompt], "passages_ids": [1, 2], "history": [], "web_search": [], "user_input": [3]}
    row = {"timestamp": str(stamp), "input_length": 100, "output_length": 9, "hash_ids": ids, "session_id": session}
    return json.dumps(row)


def test_ragpulse_stamps_are_numbers_in_strings_and_sessions_say_the_day(file: Write) -> None:
    noon = int(datetime(2025, 9, 17, 4, tzinfo=UTC).timestamp() * 1_000)
    stamps = [82, *range(93, 2_093, 100), 40]
    lines = [rag(stamp, f"{noon + 1_000 * stamp - 3_000}-x{stamp}") for stamp in stamps]
    reading = read_traffic(file("\n".join(lines) + "\n\n"))
    trace, report = reading.trace, reading.report
    assert trace is not None
    assert report.inversions == 1
    assert trace.start is not None
    assert (trace.start.isoformat(), trace.time_zone) == ("2025-09-17T12:00:00+08:00", "Asia/Shanghai")
    assert report.tick_s == 1.0
    assert trace.blocks is not None
    assert trace.blocks.ids[:4].tolist() == [8, 1, 2, 3]


def test_vidur_and_splitwise_count_seconds(file: Write) -> None:
    vidur = read_trace(file("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,109\n"))
    assert vidur.arrival_s.tolist() == [0.0, 4.314579]
    header = "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size"
    splitwise = read_traffic(file(f"{header}\n0,2,7,1.5,1,374,44\n"))
    assert splitwise.trace is not None
    assert splitwise.trace.arrival_s.tolist() == [1.5]
    assert names(splitwise, "tenant") == ["7"]


def capture(at: str, usage: dict[str, int] | None, *, coded: bool = True, stream: bool = False) -> str:
    body = json.dumps({"choices": [{"text": 'say "prompt_tokens": 5'}], **({"usage": usage} if usage else {})})
    if stream:
        first = '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
        body = f"data: {first}\n\ndata: {body}\n\ndata: [DONE]"
    data = base64.b64encode(body.encode()).decode() if coded else body
    sent = {"data": "e30=", "encoding": "BASE64", "mode": "INPUT", "observedContentType": "application/json"}
    got = {"data": data, "encoding": "BASE64" if coded else "JSON", "mode": "OUTPUT"}
    whole = {
        "captureData": {"endpointInput": sent, "endpointOutput": got},
        "eventMetadata": {"eventId": "e", "inferenceTime": at},
    }
    return json.dumps(whole)


def test_a_data_capture_tree_is_read_and_its_sample_scaled(file: Write, tmp_path: Path) -> None:
    hour = "endpoint/AllTraffic/2026/03/04"
    file(
        "\n".join(
            [
                capture("2026-03-04T05:00:01Z", {"prompt_tokens": 11, "completion_tokens": 3}),
                capture("2026-03-04T05:00:09Z", {"prompt_tokens": 12, "completion_tokens": 4}, coded=False),
                capture("2026-03-04T05:00:10Z", None),
            ]
        ),
        f"{hour}/05/00-00-1.jsonl",
    )
    file(
        capture("2026-03-04T06:00:02Z", {"prompt_tokens": 13, "completion_tokens": 5}, stream=True),
        f"{hour}/06/00-00-2.jsonl",
    )
    file("", f"{hour}/07/empty.jsonl")
    reading = read_traffic(tmp_path / "endpoint")
    trace = reading.trace
    assert trace is not None
    assert reading.report.format == "SageMaker Data Capture"
    assert trace.input_tokens.tolist() == [11, 12, 13]
    assert trace.output_tokens.tolist() == [3, 4, 5]
    assert trace.start == datetime(2026, 3, 4, 5, 0, 1, tzinfo=UTC)
    assert reading.report.dropped == {"without a length": 1}
    assert any("1 replies hold no usage" in note for note in trace.notes)
    assert any("InitialSamplingPercentage" in note for note in trace.notes)
    whole = read_trace(tmp_path / "endpoint", sampling=0.1)
    assert len(whole) == 30
    assert any("holds 10 % of the requests" in note for note in whole.notes)
    assert len(read_trace(tmp_path / "endpoint", lengths="chat")) == 4


def test_any_csv_json_or_parquet_with_known_names(file: Write, tmp_path: Path) -> None:
    csv = read_traffic(
        file("created_at;usage.prompt_tokens;usage.completion_tokens;user\n1764540000;5;6;a\n1764540001;7;8;b\n")
    )
    assert csv.trace is not None
    assert csv.trace.start == datetime(2025, 11, 30, 22, tzinfo=UTC)
    assert csv.trace.arrival_s.tolist() == [0.0, 1.0]
    assert names(csv, "tenant") == ["a", "b"]
    lines = [
        json.dumps({"ts": f"2026-01-01T00:00:0{k}.5Z", "usage": {"input_tokens": str(k), "output_tokens": 2}})
        for k in range(3)
    ]
    nested = read_trace(file("\ufeff" + "\r\n".join(lines)))
    assert nested.input_tokens.tolist() == [0, 1, 2]
    frame = pl.DataFrame({"arrival_time_us": [1_000_000, 2_500_000], "isl": [3, 4], "osl": [5, 6]})
    frame.write_parquet(tmp_path / "p.parquet")
    assert read_trace(tmp_path / "p.parquet").arrival_s.tolist() == [0.0, 1.5]
    odd = file("when,p,q,max_tokens\n0,1,2,9\n1500,3,4,9\n")
    given = {"arrival": "when", "input": "p", "output": "q"}
    assert read_trace(odd, columns=given, time_unit="ms").arrival_s.tolist() == [0.0, 1.5]
    with pytest.raises(ScenarioError, match="no column `whn`"):
        read_trace(odd, columns={**given, "arrival": "whn"})


def test_relative_stamps_without_a_unit_are_asked_for_with_what_each_would_mean(file: Write) -> None:
    path = file("timestamp,input_tokens,output_tokens\n0,1,1\n3536999,1,1\n")
    with pytest.raises(DataError, match="unknown unit") as caught:
        read_trace(path)
    assert "as milliseconds 3,537 s" in str(caught.value)
    assert read_trace(path, time_unit="ms").span_s == pytest.approx(3536.999)


# --- ServeGen --------------------------------------------------------------------------------------------------------

IDLE = "0,0,0,,0,0\n"


def test_servegen_clients_give_counts_and_with_lengths_their_own_requests(file: Write, tmp_path: Path) -> None:
    file(f"{IDLE}600,2.0,1.5,Gamma,0.44,0.5\n1200,0,0,,0,0\n", "c/chunk-0-trace.csv")
    file("0,1.0,0.7,Weibull,1.4,1.1\n600,1.0,0.7,Weibull,1.4,1.1\n", "c/chunk-1-trace.csv")
    histogram = {"0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{5: 1.0}"}}
    counts = read_traffic(tmp_path / "c")
    assert counts.counts is not None
    assert counts.trace is None
    assert counts.counts.requests.tolist() == [600.0, 1_800.0, 0.0]
    for number in (0, 1):
        file(json.dumps(histogram), f"c/chunk-{number}-dataset.json")
    reading = read_traffic(tmp_path / "c")
    trace = reading.trace
    assert trace is not None
    busy = np.array(names(reading, "tenant")) == "client 0"
    assert np.all((trace.arrival_s[busy] >= 600) & (trace.arrival_s[busy] < 1_200))
    assert abs(int(busy.sum()) - 1_200) < 4 * 1.5 * 1_200**0.5
    assert set(trace.input_tokens.tolist()) == {10, 20}
    assert set(trace.output_tokens.tolist()) == {5}
    with tarfile.open(tmp_path / "c.tgz", "w:gz") as archive:
        archive.add(tmp_path / "c", "data/c")
    packed = read_traffic(tmp_path / "c.tgz")
    assert packed.trace is not None
    assert np.array_equal(packed.trace.arrival_s, trace.arrival_s)


@pytest.mark.parametrize(
    "literal", ["__import__('os').system('touch owned')", "{" * 100_000, "[1, 2]", "{1: 'x'}", "{'a': 1}", "(" * 9_000]
)
def test_a_python_literal_is_parsed_and_never_run(file: Write, tmp_path: Path, literal: str) -> None:
    file("0,1.0,1,Gamma,1,1\n", "c/chunk-0-trace.csv")
    file(json.dumps({"0": {"input_tokens": literal, "output_tokens": "{1: 1}"}}), "c/chunk-0-dataset.json")
    with pytest.raises(DataError, match="client 0, 0, input_tokens"):
        read_traffic(tmp_path / "c")
    assert not Path("owned").exists()


# --- the published files ---------------------------------------------------------------------------------------------

ORACLES = {
    # rows, span in s, mean input, mean output
    "AzureLLMInferenceTrace_conv.csv": (19_366, 3501.722, 1154.6974, 211.1259),
    "AzureLLMInferenceTrace_code.csv": (8_819, 3435.948, 2047.8483, 27.8825),
    "mooncake_synthetic_trace.jsonl": (3_993, 1022.025, 15325.4766, 149.1190),
    "ragpulse_0_trace.jsonl": (7_106, 604_603.0, 2943.5827, 283.2361),
}


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_a_published_trace_reads_without_options_and_has_its_known_values(shared_data: Path, name: str) -> None:
    reading = read_traffic(shared_data / "traces" / name)
    rows, span, inputs, outputs = ORACLES[name]
    trace = reading.trace
    assert trace is not None
    assert (reading.report.read, reading.report.kept) == (rows, rows)
    assert reading.report.span_s == pytest.approx(span, abs=0.0005)
    assert trace.span_s == pytest.approx(span, abs=0.0005)
    assert trace.input_tokens.mean() == pytest.approx(inputs, abs=5e-5)
    assert trace.output_tokens.mean() == pytest.approx(outputs, abs=5e-5)
    json.dumps(as_json(reading.report), allow_nan=False)


def test_every_published_file_reads(shared_data: Path) -> None:
    for path in sorted((shared_data / "traces").iterdir()):
        reading = read_traffic(path)
        assert reading.trace is not None or reading.counts is not None, path
        drawn = read_traffic(path, Options(lengths=preset("chat"))) if path.name.startswith("nab") else reading
        assert drawn.report.kept


def test_ragpulse_has_one_inversion_and_begins_at_a_wednesday_noon(shared_data: Path) -> None:
    report = read_traffic(shared_data / "traces" / "ragpulse_0_trace.jsonl").report
    assert report.inversions == 1
    assert report.tick_s == 1.0
    assert f"{report.start:%A %H:%M %z}" == "Wednesday 12:00 +0800"


def test_the_elastic_load_balancer_counts_lack_eight_steps(shared_data: Path) -> None:
    path = shared_data / "traces" / "nab_elb_request_count_8c0756.csv"
    reading = read_traffic(path)
    assert reading.counts is not None
    assert (reading.report.step_s, reading.report.missing_steps, reading.report.missing_as) == (300.0, 8, "gap")
    assert np.count_nonzero(np.isnan(reading.counts.requests)) == 8
    zeros = read_traffic(path, Options(missing="zero"))
    assert zeros.counts is not None
    assert np.nansum(reading.counts.requests) == zeros.counts.requests.sum()
    assert any("8 steps are missing of 300 s each: taken as gaps" in note for note in reading.report.notes())


def test_servegen_totals(shared_data: Path) -> None:
    reading = read_traffic(shared_data / "traces" / "servegen_language_m-large_total_rate_10min.csv")
    assert reading.counts is not None
    assert reading.counts.requests.sum() == pytest.approx(236.89e6, rel=1e-4)
    assert reading.report.mean_rate == pytest.approx(195.84, abs=0.005)
    clients = read_traffic(shared_data / "traces" / "servegen_reason_deepseek-r1_trace_csvs.tgz")
    totals = read_traffic(shared_data / "traces" / "servegen_reason_deepseek-r1_total_rate_10min.csv")
    assert clients.counts is not None
    assert totals.counts is not None
    assert clients.counts.requests == pytest.approx(totals.counts.requests, rel=1e-6)


def test_a_day_of_minutes_sums_its_rows(shared_data: Path) -> None:
    reading = read_traffic(shared_data / "traces" / "invitro_azure_functions_invocations_per_min.csv")
    assert reading.counts is not None
    assert (len(reading.counts.requests), reading.counts.step_s) == (1_440, 60.0)
    table = pl.read_csv(shared_data / "traces" / "invitro_azure_functions_invocations_per_min.csv")
    assert reading.counts.requests.sum() == table.select(pl.sum_horizontal(pl.col(pl.Int64)).sum()).item()


# --- hostile files ---------------------------------------------------------------------------------------------------

GOOD = "timestamp,input_tokens,output_tokens"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"{GOOD}\n2026-01-01T00:00:00Z,1,1\n1764540000,1,1\n", "mixes numbers and dates"),
        (f"{GOOD}\n1764540000,1,1\n1764540000500,1,1\n", "mixes time units"),
        (f"{GOOD}\n2026-01-01T00:00:00Z,1,1\n2026-01-01T00:00:01,1,1\n", "other rows state a zone"),
        (f"{GOOD}\n".encode() + b"2026-01-01T00:00:00Z,\xff\xfe,1\n", "UTF-8"),
        (f"{GOOD}\n".encode("utf-16"), "UTF-16"),
        (b"\x1f\x8b\x08\x00" + bytes(200), "packed with gzip"),
        (b"PK\x03\x04" + bytes(200), "packed with zip"),
        ('{"timestamp": 0, "input_length": ' + "[" * 200_000, "not"),
        ('{"a": ' * 3_000 + "1" + "}" * 3_000, "not"),
        ('{"MetricDataResults": [{"Timestamps": ["2026-01-01T00:00:00Z"], "Values": []}]}', "not a value for each"),
        ('{"MetricDataResults": {}}', "no point"),
        ('{"Datapoints": [{"Timestamp": "2026-01-01T00:00:00Z", "Average": 1.0}]}', "no Sum"),
        (f"{GOOD}\nnever,1,1\nnor then,1,1\n", "no requests"),
        (",".join(f"c{k}" for k in range(30_000)) + "\n" + "1," * 30_000, ""),
        ("a" * 5_000_000, ""),
        (bytes(100), "does not start with text"),
        ("timestamp,value\n2026-01-01 00:00:00,-4\n2026-01-01 00:01:00,4\n", "0 or more"),
        ("timestamp,value\n2026-01-01 00:00:00,1e400\n", ""),
        ("timestamp,value\n0,1\n1,1\n99999999999,1\n", ""),
    ],
)
def test_a_hostile_file_gets_a_clear_message(file: Write, content: str | bytes, says: str) -> None:
    path = file(content)
    with pytest.raises(FleetcastError) as caught:
        read_trace(path)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 3_000


def test_rows_that_are_no_requests_are_dropped_and_counted(file: Write) -> None:
    rows = [
        "2026-01-01T00:00:00Z,1,1", "2026-01-01T00:00:01Z,1000000000,1", "2026-01-01T00:00:02Z,-5,1",
        "2026-01-01T00:00:03Z,many,1", "2026-01-01T00:00:04Z,1.5,1", "2026-01-01T00:00:05Z,,1",
        "2026-01-01T00:00:06Z,inf,1", "soon,1,1", "2026-01-01T00:00:07Z,7,0",
        *(f"2026-01-01T00:01:0{k}Z,1,1" for k in range(9)),
    ]  # fmt: skip
    report = read_traffic(file("\ufeff" + "\r\n".join([GOOD, *rows]))).report
    assert report.dropped == {
        "without a readable arrival": 1,
        "without a length": 1,
        "with a length that is no number": 2,
        "with a negative length": 1,
        "with a length that is not whole": 1,
        "with a length above 10,000,000 tokens": 1,
        "without output (failed or cancelled)": 1,
    }
    assert (report.read, report.kept) == (18, 10)


def test_json_lines_that_are_broken_or_hold_numbers_as_text(file: Write) -> None:
    good = [json.dumps({"timestamp": str(1_000 * k), "input_length": "7", "output_length": 2.0}) for k in range(6)]
    report = read_traffic(file("\n".join([good[0], '{"timestamp": 5', "null", *good[1:], ""]))).report
    assert (report.kept, report.dropped) == (6, {"unreadable": 2})


def test_a_parquet_footer_without_rows_and_one_that_promises_too_much(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"timestamp": [], "input_tokens": [], "output_tokens": []}).write_parquet(path)
    with pytest.raises(DataError, match="no requests"):
        read_trace(path)
    pl.DataFrame({"arrival_s": [], "input_tokens": [], "output_tokens": []}).write_parquet(path)
    with pytest.raises(DataError, match="no requests"):
        read_trace(path)


def test_an_archive_of_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tgz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("chunk-0-trace.csv")
        member.size = 80_000_000
        archive.addfile(member, io.BytesIO(bytes(80_000_000)))
    with pytest.raises(DataError, match="too large"):
        read_traffic(path)


def test_a_damaged_archive_and_a_reply_that_is_no_text(file: Write, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "c.tgz", "w:gz") as archive:
        archive.add(file("".join(f"{600 * k},1.0,1,Gamma,1,1\n" for k in range(2_000)), "chunk-0-trace.csv"))
    spoilt = bytearray((tmp_path / "c.tgz").read_bytes())
    spoilt[len(spoilt) // 2 :] = bytes(len(spoilt) - len(spoilt) // 2)
    with pytest.raises(DataError):
        read_traffic(file(bytes(spoilt), "spoilt.tgz"))
    whole = json.loads(capture("2026-03-04T05:00:09Z", {"prompt_tokens": 12, "completion_tokens": 4}))
    broken = json.loads(json.dumps(whole))
    broken["captureData"]["endpointOutput"]["data"] = base64.b64encode(b"\xff\xfe\x00").decode()
    report = read_traffic(file("\n".join(map(json.dumps, [whole, broken])))).report
    assert (report.kept, report.dropped) == (1, {"without a length": 1})


def test_options_are_checked() -> None:
    for bad in (
        {"sampling": 0.0},
        {"time_unit": "min"},
        {"missing": "maybe"},
        {"values": "sum"},
        {"columns": {"x": "y"}},
    ):
        with pytest.raises(ScenarioError):
            Options(**bad)  # type: ignore[arg-type]

"""Training logs made elsewhere: event files, CSV of several kinds, and what is refused."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import provenance, tables
from frameworks import adapter, collapse, import_log, tensorboard_events, training_log_csv
from frameworks.tensorboard_events import metrics_by_step
from system.errors import UserError
from tests.forked_command import run_module
from tests.user_errors import refused

NUMBERS = st.floats(width=32)


def written(folder: Path, rows: dict[int, dict[str, float]], after: int = 0) -> Path:
    writer = tensorboard_events.Writer(folder, after)
    for step, values in rows.items():
        writer.add(step, values)
    writer.close()
    return max(folder.iterdir())


@given(st.dictionaries(st.integers(0, 2**40), st.dictionaries(st.text(max_size=20), NUMBERS, min_size=1), max_size=5))
def test_events_are_read_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, rows: dict) -> None:
    file = written(tmp_path_factory.mktemp("events"), rows)
    scalars = [
        (event.step, event.tag, struct.pack("<f", event.value)) for event in tensorboard_events.read_scalars(file)
    ]
    assert scalars == [
        (step, tag, struct.pack("<f", value)) for step, values in rows.items() for tag, value in values.items()
    ]


def test_the_checksum_is_crc32c() -> None:
    crc = 0xE3069283  # of "123456789", RFC 3720 and others
    assert tensorboard_events.checksum(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_cut_event_file_gives_what_is_whole_and_a_damaged_one_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, {1: {"train/reward": 0.5}, 2: {"train/reward": 0.75}})
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    assert metrics_by_step(tmp_path) == {1: {"reward": 0.5}} and not capsys.readouterr().out
    file.write_bytes(whole[:-6] + b"\xff" + whole[-5:])
    assert metrics_by_step(tmp_path) == {1: {"reward": 0.5}}
    assert "is damaged" in capsys.readouterr().out


def test_a_record_that_is_no_event_is_one_sentence(tmp_path: Path) -> None:
    file = written(tmp_path, {1: {"train/reward": 0.5}})
    for data in (b"\xff\xff", b"\x07abc", b"", b"\x0a\xff"):
        length = struct.pack("<Q", len(data))
        record = length + struct.pack("<I", tensorboard_events.checksum(length)) + data
        with file.open("ab") as stream:
            stream.write(record + struct.pack("<I", tensorboard_events.checksum(data)))
        with refused("damaged-event-file", path=str(file)):
            import_log.read([file], "trl", "imported/x")
        file.write_bytes(file.read_bytes()[: -len(record) - 4])


def test_a_repeated_step_counts_once_and_as_the_later(tmp_path: Path) -> None:
    written(tmp_path, {1: {"train/reward": 0.5, "eval/reward": 9.0}, 2: {"train/reward": 0.25}})
    written(tmp_path, {2: {"train/reward": 0.75}}, after=1)
    assert metrics_by_step(tmp_path) == {1: {"reward": 0.5}, 2: {"reward": 0.75}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step,reward_mean,kl\n10,0.5,\n20,0.75,0.1\n", [(10, 0.5, None), (20, 0.75, 0.1)]),
        ('"Step","mine - kl","mine - kl__MIN"\n"1","0.5","0.1"\n', [(1, None, 0.5)]),
        ("_step,train/global_step,train/kl\n7,1,0.5\n8,1,\n9,2,NaN\n", [(1, None, 0.5), (2, None, math.nan)]),
    ],
)
def test_csv(tmp_path: Path, text: str, expected: list[tuple[int, float | None, float | None]]) -> None:
    file = tmp_path / "log.csv"
    file.write_text("\ufeff" + text, encoding="utf-8")
    rows = import_log.read([file], None, "imported/x")
    assert repr([(row["step"], row["reward_mean"], row["kl"]) for row in rows]) == repr(expected)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.csv", "", "no-step-column"),
        ("a.csv", "time,reward_mean\n1,2\n", "no-step-column"),
        ("a.csv", "step,one - kl,two - kl\n1,2,3\n", "several-runs"),
        ("a.csv", "step,kl,kl\n1,2,3\n", "several-runs"),
        ("a.csv", "step,step,kl\n1,2,3\n", "several-runs"),
        ("a.csv", "step,kl\n1,high\n", "not-a-number"),
        ("a.csv", "step,kl\n1,2,3\n", "not-a-number"),
        ("a.csv", "step,kl\n2.5,1\n", "not-a-number"),
        ("a.csv", "step,kl\n1e400,1\n", "not-a-number"),
        ("a.csv", "step,kl\n-3,1\n", "step-out-of-range"),
        ("a.csv", "step,kl\n1e18,1\n", "step-out-of-range"),
        ("a.csv", "step,unknown\n1,2\n", "no-known-metrics"),
        ("a.csv", "step,kl\n1,caf\u00e9\n".encode("latin-1"), "unreadable-csv"),
        ("a.csv", "step,kl\n1,2\n".encode("utf-16"), "unreadable-csv"),
        ("a.csv", f"step,kl,text\n1,2,{'x' * 200_000}\n", "unreadable-csv"),
        ("a.jsonl", "{}\n", "missing-framework"),
        ("missing/a.csv", None, "missing-file"),
        ("", None, "missing-file"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(
    tmp_path: Path, name: str, content: str | bytes | None, code: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused(code):
        import_log.read([tmp_path / name], None, "imported/x")


@pytest.mark.parametrize("value", ['"high"', "[1, 2]", "true", "1" + "0" * 400])
@pytest.mark.parametrize(("framework", "name"), [("verl", "log.jsonl"), ("trl", "trainer_state.json")])
def test_a_metric_that_is_no_number_is_one_sentence_or_unknown(
    tmp_path: Path, framework: str, name: str, value: str
) -> None:
    text = {
        "verl": f'{{"step": 1, "data": {{"critic/score/mean": {value}}}}}\n',
        "trl": f'{{"log_history": [{{"step": 1, "reward": 1.0, "kl": {value}}}]}}',
    }[framework]
    (tmp_path / name).write_text(text)
    try:
        (row,) = import_log.read([tmp_path / name], framework, "imported/x")
    except UserError:
        return
    assert framework == "trl" and (row["kl"] is None or math.isnan(row["kl"]) or row["kl"] == 1)


@pytest.mark.parametrize("step", ['"1"', "null", "1" + "0" * 30, "-1", "1.5"])
@pytest.mark.parametrize(("framework", "name"), [("verl", "log.jsonl"), ("trl", "trainer_state.json")])
def test_a_step_that_is_none_is_one_sentence(tmp_path: Path, framework: str, name: str, step: str) -> None:
    text = {
        "verl": f'{{"step": {step}, "data": {{"critic/score/mean": 1.0}}}}\n',
        "trl": f'{{"log_history": [{{"step": {step}, "reward": 1.0}}]}}',
    }[framework]
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as error:
        import_log.read([tmp_path / name], framework, "imported/x")
    assert error.value.code in ("step-out-of-range", "unreadable-training-log")


@pytest.mark.parametrize(
    ("framework", "tag", "column"),
    [(None, "kl", "kl"), ("verl", "critic/score/mean", "reward_mean"), ("openrlhf", "train/kl", "kl")],
)
def test_event_files_of_each_kind(tmp_path: Path, framework: str | None, tag: str, column: str) -> None:
    file = written(tmp_path, {1: {tag: 0.5}, 2: {tag: 0.25}})
    rows = import_log.read([file], framework, "imported/x")
    assert [(row["step"], row[column]) for row in rows] == [(1, 0.5), (2, 0.25)]
    file.write_bytes(b"no events at all, but long enough for a header")
    with refused("damaged-event-file", path=str(file)):
        import_log.read([file], framework, "imported/x")


def test_a_state_may_begin_at_step_0(tmp_path: Path) -> None:
    history = [{"step": step, "reward": 1.0, "num_tokens": 10 * step} for step in (0, 1)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    assert [row["step"] for row in import_log.read([tmp_path / "trainer_state.json"], "trl", "imported/x")] == [0, 1]


@pytest.mark.parametrize("text", ["{}", "[]", '{"log_history": [1]}', '{"log_history": [{"reward": 1}]}', "\u2028{"])
def test_a_damaged_state_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "trainer_state.json").write_text(text, encoding="utf-8")
    with refused("unreadable-training-log", path=str(tmp_path / "trainer_state.json")):
        import_log.read([tmp_path / "trainer_state.json"], "trl", "imported/x")


def test_sums_since_the_beginning_are_per_step_also_in_csv(tmp_path: Path) -> None:
    history = [{"step": 2, "reward": 1.0, "num_tokens": 100, "step_time": 5.0},
               {"step": 3, "loss": 0.5},  # an update on the completions of the step before
               {"step": 4, "reward": 0.5, "num_tokens": 300, "step_time": 10.0}]  # fmt: skip
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    export = "step,train/reward,train/num_tokens,train/step_time\n2,1,100,5\n4,0.5,300,10\n"
    (tmp_path / "export.csv").write_text(export)
    for file in ("trainer_state.json", "export.csv"):
        rows = import_log.read([tmp_path / file], "trl", "imported/x")
        columns = [(row["step"], row["reward_mean"], row["wall_time"], row["tokens_per_second"]) for row in rows]
        assert columns == [(2, 1.0, 10.0, 10.0), (4, 0.5, 30.0, 10.0)]


def test_a_metric_with_train_before_it_is_the_metric() -> None:
    assert (
        training_log_csv.metric_in_column("my run - train/kl", {"kl"}) == "kl"
        and training_log_csv.metric_in_column("eval/kl", {"kl"}) is None
    )


@pytest.mark.slow
def test_the_command_says_where_the_log_is_from(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,reward_mean\n1,0.5\n2,0.75\n")
    output = tmp_path / "training_log.parquet"
    arguments = ["--input", tmp_path / "log.csv", "--run", "imported/x", "--source", "a paper", "--output", output]
    run_module("frameworks.import_log", *arguments).check_returncode()
    assert tables.read(output, tables.TRAINING_LOG)["reward_mean"].to_pylist() == [0.5, 0.75]
    record = provenance.read(output)
    assert record["source"] == "a paper" and list(record["imported"]) == [str(tmp_path / "log.csv")]


STEPS = "step:{} - critic/score/mean:0.2 - response_length/mean:300.0 - actor/lr(1e-4):0.010"
OLD_VERL = "\n".join(
    [
        "(main_task pid=7) "
        + STEPS.format(1)
        + " - critic/kl:0.001 - actor/entropy_loss:0.700 - critic/kl_coeff:0.002",
        "(main_task pid=7) step:1 - val/test_score/gsm8k:0.5",
        "(main_task pid=7) " + STEPS.format(2) + " - critic/kl:0.002 - actor/entropy_loss:0.600",
    ]
)
OLD_TRL = [
    {"step": 1, "reward": 0.1, "reward_std": 0.3, "completion_length": 100.0, "kl": 0.0, "num_tokens": 900.0},
    {"step": 1, "eval_loss": 0.2},
    {"step": 2, "reward": 0.2, "reward_std": 0.2, "completion_length": 90.0, "kl": 0.01, "num_tokens": 400.0},
    {"step": 2, "train_runtime": 10.0},
]
OLD_OPENRLHF = (
    "_step,train/global_step,train/reward,train/response_length,train/kl,train/actor_lr\n5,1,0.2,500,0.1,5e-7\n"
)
SWIFT = {"reward": 0.2, "kl": 0.5, "completions/mean_length": 90.0, "global_step/max_steps": "3/100"}


@pytest.mark.parametrize(
    ("framework", "name", "content", "expected"),
    [
        ("verl", "train.log", OLD_VERL,
         {"step": 1, "reward_mean": 0.2, "kl": 0.001, "entropy": 0.7, "learning_rate": 1e-6}),
        ("trl", "trainer_state.json", json.dumps({"log_history": OLD_TRL}),
         {"step": 1, "reward_mean": 0.1, "response_length_mean": 100.0, "reward_std": None}),
        ("openrlhf", "wandb.csv", OLD_OPENRLHF,
         {"step": 1, "reward_mean": 0.2, "response_length_mean": 500.0, "kl": 0.1, "learning_rate": 5e-7}),
        ("trl", "logging.jsonl", json.dumps(SWIFT) + "\n", {"step": 3, "reward_mean": 0.2, "kl": 0.5}),
    ],
)  # fmt: skip
def test_names_of_earlier_releases(tmp_path: Path, framework: str, name: str, content: str, expected: dict) -> None:
    (tmp_path / name).write_text(content)
    row, *_ = import_log.read([tmp_path / name], framework, "imported/x")
    assert {key: pytest.approx(value) if value else value for key, value in expected.items()} == {
        key: row[key] for key in expected
    }


def test_lines_of_one_step_are_merged_and_counters_may_restart(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(OLD_VERL)
    assert adapter.load("verl").metrics_of_file(tmp_path / "train.log")[1]["val/test_score/gsm8k"] == 0.5
    timed = [{**entry, "step_time": 2.0} for entry in OLD_TRL]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": timed}))
    rows = import_log.read([tmp_path / "trainer_state.json"], "trl", "imported/x")
    assert [row["tokens_per_second"] for row in rows] == [450.0, 200.0]
    assert [row["reward_std"] for row in rows] == [0.3, 0.2]


def test_unknown_metrics_are_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(OLD_VERL)
    named = import_log.unknown_names([tmp_path / "train.log"], "verl")
    assert named == {"critic/kl_coeff": "critic/kl", "val/test_score/gsm8k": ""}
    (tmp_path / "wandb.csv").write_text("_step,_runtime,train/reward,train/kl__MIN,critic_lr\n1,2,3,4,5\n")
    assert import_log.unknown_names([tmp_path / "wandb.csv"], "openrlhf") == {"critic_lr": "critic_loss"}


@pytest.mark.parametrize(
    "text",
    [
        "{'loss': 0.0, 'grad_norm': 0.1, 'reward': 0.2, 'epoch': 0.1}\n",
        "12:00:00 SUCCESS Step 3 |   10.2s | Reward 0.3100 | Seq. Length 200\n",
        "model.py:918 - step 4: {'train/loss': 0.1, 'train/grad_norm': 0.2}\n",
    ],
)
@pytest.mark.parametrize("framework", ["verl", "trl"])
def test_logs_of_other_programs_are_named(tmp_path: Path, framework: str, text: str) -> None:
    (tmp_path / "out.log").write_text("starting\n" + text)
    with refused("log-of-another-program"):
        import_log.read([tmp_path / "out.log"], framework, "imported/x")


@pytest.mark.parametrize(
    ("name", "text", "stated", "right"),
    [
        ("train.log", OLD_VERL, "openrlhf", "verl"), ("train.log", OLD_VERL, "trl", "verl"),
        ("train.log", OLD_VERL, None, "verl"),
        ("trainer_state.json", json.dumps({"log_history": OLD_TRL}), "verl", "trl"),
    ],
)  # fmt: skip
def test_a_log_of_another_framework_is_named(
    tmp_path: Path, name: str, text: str, stated: str | None, right: str
) -> None:
    (tmp_path / name).write_text(text)
    with refused("log-of-another-framework", framework=right):
        import_log.read([tmp_path / name], stated, "imported/x")


def test_numbers_that_numpy_and_torch_print(tmp_path: Path) -> None:
    text = "step:1 - critic/score/mean:tensor(0.5, device='cuda:0') - actor/kl_loss:np.float64(0.25) - x:1\n"
    (tmp_path / "train.log").write_text(text)
    (row,) = import_log.read([tmp_path / "train.log"], "verl", "imported/x")
    assert (row["reward_mean"], row["kl"]) == (0.5, 0.25)


def test_kinds_of_collapse_that_a_log_cannot_show(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(OLD_VERL)
    rows = import_log.read([tmp_path / "train.log"], "verl", "imported/x")
    assert collapse.unseen(rows) == ["length at the cap", "format errors", "accuracy lost"]

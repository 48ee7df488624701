import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import seeds
from eval import sample_journal
from tests.user_errors import refused


def sample(problem_id, repeat=0, completion="4"):
    return {"problem_id": problem_id, "repeat": repeat, "completion": completion}


def write(folder, *samples):
    writer = sample_journal.Writer(folder)
    writer.write(samples)
    writer.close()


def files(folder):
    return sorted(folder.glob("*.jsonl"))


def test_what_several_processes_wrote_is_read_together(tmp_path):
    write(tmp_path, sample("a"), sample("a", 1))
    write(tmp_path, sample("b"))
    assert set(sample_journal.read(tmp_path)) == {("a", 0), ("a", 1), ("b", 0)}
    assert sample_journal.read(tmp_path / "not there") == {}


@given(st.text())
def test_any_completion_survives(tmp_path_factory, text):
    text = text.encode("utf-8", "replace").decode()
    folder = tmp_path_factory.mktemp("work")
    write(folder, sample("a", completion=text))
    assert sample_journal.read(folder)["a", 0]["completion"] == text


@pytest.mark.parametrize("kept", range(1, 40, 4))
def test_a_torn_last_line_is_dropped(tmp_path, kept):
    write(tmp_path, sample("a"), sample("b"))
    (file,) = files(tmp_path)
    whole, last = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(whole + last[:kept])
    assert set(sample_journal.read(tmp_path)) == {("a", 0)}


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path):
    write(tmp_path, sample("a"), sample("b"))
    (file,) = files(tmp_path)
    last = file.read_bytes().splitlines(keepends=True)[1]
    file.write_bytes(b"\0" * 20 + b"\n" + last)
    with refused("damaged-journal"):
        sample_journal.read(tmp_path)


def test_a_restarted_process_does_not_append_to_a_torn_line(tmp_path):
    write(tmp_path, sample("a"))
    (file,) = files(tmp_path)
    with file.open("a") as torn:
        torn.write('{"problem_id": "b", "rep')
    write(tmp_path, sample("b"))
    assert set(sample_journal.read(tmp_path)) == {("a", 0), ("b", 0)}


def test_each_line_is_counted_once_while_files_grow(tmp_path):
    counter = sample_journal.SampleCounter([tmp_path / "x", tmp_path / "y"])
    assert counter.count() == 0
    write(tmp_path / "x", sample("a"), sample("b"))
    assert counter.count() == 2
    with files(tmp_path / "x")[0].open("a") as growing:
        growing.write(json.dumps(sample("c")) + "\n" + '{"torn')
    write(tmp_path / "y", sample("d"))
    assert counter.count() == 4


@given(st.integers(0, 2**40), st.text(), st.text(), st.integers(0, 10**6))
def test_seeds_fit_31_bits_and_depend_on_everything(base, benchmark, problem, repeat):
    seed = seeds.sampling_seed(base, benchmark, problem, repeat)
    assert 0 <= seed < 2**31
    assert seed == seeds.sampling_seed(base, benchmark, problem, repeat)
    others = {
        seeds.sampling_seed(base + 1, benchmark, problem, repeat),
        seeds.sampling_seed(base, benchmark + "x", problem, repeat),
        seeds.sampling_seed(base, benchmark, problem + "x", repeat),
        seeds.sampling_seed(base, benchmark, problem, repeat + 1),
    }
    assert seed not in others


def test_seeds_of_a_benchmark_do_not_repeat():
    seeds_used = {seeds.sampling_seed(0, "aime24", str(p), r) for p in range(30) for r in range(64)}
    assert len(seeds_used) == 30 * 64


def test_settings_hash_does_not_depend_on_order():
    assert sample_journal.settings_hash({"a": 1, "b": 2}) == sample_journal.settings_hash({"b": 2, "a": 1})
    assert sample_journal.settings_hash({"a": 1}) != sample_journal.settings_hash({"a": 2})

"""Generation with the real vLLM and lm-eval, on a tiny model with random weights."""

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import seeds, tables
from envs.build import python
from eval import sample_journal
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.user_errors import printed_code
from tests.waiting import WORKFLOW_LIMIT, wait_until
from tests.warm_python import warm_python

ROOT = Path(__file__).parents[2]
PYTHON = python("eval")
BENCHMARKS = ("arithmetic_expressions", "arithmetic_words")
CONTEXT = 512
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
]


def environment():
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def problem(number, question):
    message = {"role": "user", "content": question}
    return {"problem_id": f"p{number}", "task": "arithmetic", "messages": [message], "answer": "4", "meta": "{}"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    for seed in (0, 1):
        copy_model(folder / f"model-{seed}", seed)
    for name in BENCHMARKS:
        rows = [problem(n, f"What is {n}+{n * 7 % 13}?") for n in range(40)]
        if name == "arithmetic_words":
            rows += [problem(40, "x" * 600), problem(41, "x" * 350)]
        tables.write(pa.Table.from_pylist(rows, tables.PROBLEM), tables.PROBLEM, folder / "data" / f"{name}.parquet")
    return folder


def command(project, work, output, *more, checkpoints=(0,), benchmarks=BENCHMARKS, interpreter=None):
    chosen = [word for step in checkpoints for word in ("--checkpoint", f"{step}={project / f'model-{step}'}")]
    return [
        interpreter or warm_python("eval"), "-m", "eval.generate", "--run", "test/tiny/seed-0", *chosen,
        "--benchmark", *benchmarks, "--protocol", "demo", "--set", "repeats=3", "--data", project / "data",
        "--work", work, "--output", output, "--device", "cpu", *more,
    ]  # fmt: skip


def start(arguments, **options):
    return subprocess.Popen(arguments, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True, **options)


def keys_of(path):
    return Counter((row["problem_id"], row["repeat"]) for row in pq.read_table(path).to_pylist())


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(condition, process):
    def holds():
        assert process.poll() is None, process.stderr.read()
        return condition()

    wait_until(holds)


@pytest.fixture(scope="module")
def generated(project):
    """Samples of two checkpoints on two benchmarks by one process: its command, output folder, and what it printed."""
    output = project / "out"
    arguments = command(project, project / "work", output, "--set", "max_tokens=150", checkpoints=(0, 1))
    done = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return arguments, output, done.stderr


def samples_of(output, step, name):
    return tables.read(output / f"step-{step}" / f"{name}.parquet", tables.SAMPLE).to_pylist()


def record_of(output, step, name):
    return json.loads((output / f"step-{step}" / f"{name}.parquet.provenance.json").read_text())


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_problem_has_every_repeat_with_its_seed_prompt_and_end(generated, name, step):
    _, output, said = generated
    assert "492/492 samples" in said
    problems = 42 if name == "arithmetic_words" else 40
    assert keys_of(output / f"step-{step}" / f"{name}.parquet") == Counter(
        (f"p{n}", r) for n in range(problems) for r in range(3)
    )
    for row in samples_of(output, step, name):
        assert row["seed"] == seeds.sampling_seed(0, name, row["problem_id"], row["repeat"])
        assert (row["run"], row["step"], row["protocol"]) == ("test/tiny/seed-0", step, "demo")
        assert row["gold"] == "4"
        assert row["prompt"].startswith("<|im_start|>system\nPlease reason step by step")
        assert row["prompt"].endswith("<|im_start|>assistant\n")
        assert row["finish_reason"] in ("stop", "length", "prompt_too_long")
        assert "<|im_end|>" not in row["completion"]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_record_counts_its_samples_and_names_model_problems_and_template(generated, name):
    _, output, _ = generated
    rows, record = samples_of(output, 0, name), record_of(output, 0, name)
    assert record["requested"] == record["delivered"] == len(rows)
    assert record["finish_reasons"] == dict(Counter(row["finish_reason"] for row in rows))
    assert len({record[key] for key in ("model_sha256", "problems_sha256", "chat_template_sha256")}) == 3


def test_the_protocol_decides_and_not_what_the_model_s_generation_config_recommends(project, generated):
    recommended = {"do_sample": True, "temperature": 0.1, "top_k": 1, "top_p": 0.1, "repetition_penalty": 3.0}
    file = shutil.copytree(project / "model-0", project / "model-2") / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | recommended))
    name, output = BENCHMARKS[0], project / "out-2"
    limit = ("--set", "max_tokens=150")
    arguments = command(project, project / "work-2", output, *limit, checkpoints=(2,), benchmarks=(name,))
    subprocess.run(arguments, cwd=ROOT, env=environment(), check=True)
    pairs = zip(samples_of(generated[1], 0, name), samples_of(output, 2, name), strict=True)
    same = [first["completion"] == second["completion"] for first, second in pairs]
    assert sum(same) > 0.8 * len(same), "the last bits of a probability may depend on the batch"


def test_a_prompt_that_leaves_no_room_or_little(generated):
    _, output, said = generated
    rows = samples_of(output, 0, "arithmetic_words")
    too_long, tight = ([row for row in rows if row["problem_id"] == name] for name in ("p40", "p41"))
    for row in too_long:
        assert (row["finish_reason"], row["completion"], row["completion_tokens"]) == ("prompt_too_long", "", 0)
        assert row["prompt_tokens"] > CONTEXT
    assert all(row["prompt_tokens"] + row["completion_tokens"] <= CONTEXT for row in tight)
    assert any(row["finish_reason"] == "length" and row["completion_tokens"] < 150 for row in tight)
    assert "leaves less than the protocol's 150" in said


def test_a_checkpoint_is_sampled_from_its_own_weights(generated):
    _, output, _ = generated
    first, second = ([row["completion"] for row in samples_of(output, step, BENCHMARKS[0])] for step in (0, 1))
    assert sum(map(str.__eq__, first, second)) < 0.2 * len(first)


def test_stored_samples_are_what_lm_eval_gets(project, generated):
    _, output, _ = generated
    replayed = subprocess.run(
        [warm_python("eval"), "-c", REPLAY, output / "step-0", project / "data"],
        cwd=ROOT, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = [[row["completion"], row["finish_reason"]] for row in samples_of(output, 0, "arithmetic_words")]
    assert json.loads(replayed.stdout.splitlines()[-1]) == wanted


def test_what_is_finished_is_not_made_again_and_a_part_of_it_is_taken_from_it(generated, tmp_path):
    arguments, whole, _ = generated
    output = shutil.copytree(whole, tmp_path / "out")
    arguments = [output if argument == whole else argument for argument in arguments]
    again = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert "0 tables" in again.stderr
    part = subprocess.run([*arguments, "--limit", "5"], cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert part.returncode == 0 and "4 tables" in part.stderr, part.stderr
    for name in BENCHMARKS:
        assert keys_of(output / "step-1" / f"{name}.parquet") == Counter(
            (f"p{n}", r) for n in range(5) for r in range(3)
        )
        record = record_of(output, 1, name)
        assert record["requested"] == record["delivered"] == 15 and record["context_tokens"] == CONTEXT
        assert record["subset"] == {"size": 5, "seed": None, "whole": 42 if name == "arithmetic_words" else 40}


REPLAY = """
import json, sys
from eval.stored_samples_model import StoredSamples
from tests.contract.lm_eval_tasks import load_tasks
task = load_tasks(["arithmetic_words"], data=sys.argv[2], protocol="demo", repeats=3)["arithmetic_words"]
task.build_all_requests()
requests = [request for request in task.instances for _ in range(request.repeats)]
print(json.dumps([[str(c), c.finish_reason] for c in StoredSamples(sys.argv[1]).generate_until(requests)]))
"""


def made_so_far(work):
    return sample_journal.SampleCounter((work / "step-0").glob("*")).count()


@pytest.mark.long
def test_killed_and_restarted_with_another_number_of_processes_and_its_worker_killed(project, tmp_path):
    """A worker that is killed alone is tried again with smaller batches."""
    work, output = tmp_path / "work", tmp_path / "out"
    process = start(command(
        project, work, output, "--data-parallel", "2", "--max-num-seqs", "4", "--set", "max_tokens=300",
        benchmarks=BENCHMARKS[:1], interpreter=PYTHON,
    ))  # fmt: skip
    wait_for(lambda: made_so_far(work) > 12, process)
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for_end(workers)
    (folder,) = (work / "step-0").glob("*")
    kept = sample_journal.read(folder)
    assert len(kept) < 40 * 3, "killed too late to show anything"
    with max(folder.glob("*.jsonl")).open("a") as torn:
        torn.write('{"problem_id": "p1", "repe')
    process = start(command(
        project, work, output, "--data-parallel", "1", "--max-num-seqs", "16", "--set", "max_tokens=300",
        benchmarks=BENCHMARKS[:1], interpreter=PYTHON,
    ))  # fmt: skip
    wait_for(lambda: made_so_far(work) > len(kept), process)
    (worker,) = children(process.pid)
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert "trying again with 8 sequences" in said
    path = output / "step-0" / "arithmetic_expressions.parquet"
    assert keys_of(path) == Counter((f"p{n}", r) for n in range(40) for r in range(3))
    final = {(row["problem_id"], row["repeat"]): row["completion"] for row in pq.read_table(path).to_pylist()}
    assert all(final[key] == sample["completion"] for key, sample in kept.items()), "no sample was made twice"
    assert [path.name for path in work.iterdir()] == [".lock"], "finished work is cleared away"


def wait_for_end(pids):
    wait_until(lambda: all("\nState:\tZ" in status(pid) for pid in pids))


def status(pid):
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ"


def test_an_engine_that_cannot_start_is_an_error_and_not_a_stall(project, tmp_path):
    shutil.copytree(project / "model-0", tmp_path / "model-0")
    shutil.copytree(project / "data", tmp_path / "data")
    config = json.loads((tmp_path / "model-0/config.json").read_text())
    (tmp_path / "model-0/config.json").write_text(json.dumps({**config, "hidden_size": 96}))
    arguments = command(tmp_path, tmp_path / "work", tmp_path / "out")
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=WORKFLOW_LIMIT
    )
    assert done.returncode == 1
    assert printed_code(done.stderr) == "generation-failed"


def test_mistakes_are_answered_before_vllm_is_imported(project, tmp_path):
    (project / "model-9").mkdir(exist_ok=True)
    (tmp_path / "without/vllm").mkdir(parents=True)
    (tmp_path / "without/vllm/__init__.py").write_text("raise SystemExit('vLLM is imported')")
    without_vllm = environment() | {"PYTHONPATH": f"{tmp_path}/without:{ROOT}"}
    for arguments, code in (
        (command(project, tmp_path, tmp_path, checkpoints=(9,), interpreter=PYTHON), "incomplete-model"),
        (command(project, tmp_path, tmp_path, benchmarks=["arithmetics"], interpreter=PYTHON), "unknown-name"),
        (command(project, tmp_path, tmp_path, "--set", "nucleus=3", interpreter=PYTHON), "unknown-field"),
        (command(project, tmp_path, tmp_path, benchmarks=["gsm8k"], interpreter=PYTHON), "missing-file"),
        (command(project, tmp_path, tmp_path, "--tensor-parallel", "2", interpreter=PYTHON), "needs-a-gpu"),
    ):
        done = subprocess.run(arguments, cwd=ROOT, env=without_vllm, capture_output=True, text=True)
        assert done.returncode == 1
        assert printed_code(done.stderr) == code
        assert len(done.stderr.splitlines()) == 1, "one sentence and no traceback"

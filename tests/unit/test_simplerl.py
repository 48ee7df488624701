"""SimpleRL's prompt, reward and settings against what was published."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from contracts.run_file import RECIPES
from frameworks.openrlhf.command import command_line, trainer_flags
from recipes.rewards import problem_from_columns
from recipes.runs import load_run
from recipes.simplerl.reward import boxed_answer
from tasks import prompts
from tests import needs

TABLE = RECIPES / "simplerl" / "published_script.md"
TRAINING_PATH = "train/math_level3to5_data_processed_with_qwen_prompt.json"
PROBLEMS = 8523


def table() -> list[list[str]]:
    """Cells of the table's rows: old name, old value, name today, value here, why."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.read_text().splitlines()]
    return [row for row in rows if len(row) == 5 and row[0] != "0.5.0" and not set(row[0]) <= {"-"}]


def rendered(name: str) -> dict[str, str]:
    run = load_run(name, "full")
    flags = trainer_flags(run, run.stages[0], 0, Path("data"), Path("model"), Path("output"), PROBLEMS)
    command, flags_by_name = command_line(flags), dict[str, str]()
    for word in command:
        if word.startswith("--"):
            flag = word[2:]
            flags_by_name[flag] = ""
        else:
            flags_by_name[flag] = f"{flags_by_name[flag]} {word}".strip()
    return flags_by_name


def same(one: str, other: str) -> bool:
    def numbers(text: str) -> list[float] | str:
        try:
            return [float(word) for word in text.split()]
        except ValueError:
            return text

    return numbers(one) == numbers(other)


# What OpenRLHF 0.11.2 itself takes where the command does not say; tests/contract has its parser confirm these.
DEFAULTS = {
    "vllm.tensor_parallel_size": "1", "actor.min_lr_ratio": "0.1", "reward.clip_range": "-10 10",
    "algo.kl.target": "none", "critic.freezing_steps": "-1",
}  # fmt: skip

# Every flag of the published script.
SCRIPT = """
    ref_num_nodes ref_num_gpus_per_node reward_num_nodes reward_num_gpus_per_node critic_num_nodes
    critic_num_gpus_per_node actor_num_nodes actor_num_gpus_per_node vllm_num_engines vllm_tensor_parallel_size
    colocate_actor_ref pretrain save_path micro_train_batch_size train_batch_size micro_rollout_batch_size
    rollout_batch_size temperature n_samples_per_prompt max_samples max_epochs num_episodes prompt_max_len
    generate_max_len zero_stage bf16 actor_learning_rate critic_learning_rate init_kl_coef prompt_data input_key
    normalize_reward flash_attn gradient_checkpointing save_steps load_checkpoint use_wandb wandb_run_name ckpt_path
    max_ckpt_num
"""


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_the_command_gives_each_flag_of_the_script_its_value(row: list[str]) -> None:
    published, value, today, here, why = row
    command = rendered("simplerl/qwen2.5-math-7b")
    if today == "–":
        assert why, f"{published} is left out without a reason"
        return
    if here == "the run's":
        assert today in command
    elif here in ("on", "off"):
        assert (today in command) == (here == "on")
    else:
        assert same(command.get(today, DEFAULTS.get(today, "missing")), here)
    spelt = {"on": {"on", "bf16", "flash_attention_2"}, "off": {"off", "k1"}}.get(value, {value})
    in_words = {"a tenth": "0.1", "mean over each completion": "seq-mean-token-mean", "in the reward": "off"}
    if not any(same(here, word) for word in spelt) and in_words.get(value) != here and here != "the run's":
        assert why, f"{published} has another value, {here} for {value}, without a reason"


def test_the_table_has_every_flag_of_the_script() -> None:
    names = re.findall(r"`(\w+)`", TABLE.read_text().partition("Paths, names and keys")[2].partition("\n\n")[0])
    assert set(SCRIPT.split()) <= {*names, *(row[0] for row in table())}
    assert len({row[0] for row in table()}) == len(table())


def test_the_run_on_one_node_differs_in_nothing_but_where_it_runs() -> None:
    many, one = rendered("simplerl/qwen2.5-math-7b"), rendered("simplerl/qwen2.5-math-7b-8gpu")
    different = {flag for flag in many.keys() | one.keys() if many.get(flag) != one.get(flag)}
    gpus = {f"{group}.num_gpus_per_node" for group in ("actor", "ref", "critic")}
    assert different == {*gpus, "vllm.num_engines", "ds.adam_offload", "train.num_episodes"}
    assert {one[flag] for flag in [*gpus, "vllm.num_engines"]} == {"2"}  # as train_ppo_…_1_node.sh
    assert int(many["train.num_episodes"]) == 2 * int(one["train.num_episodes"])  # the report trained half of it


def test_with_grpo_only_the_advantage_the_critic_and_where_it_runs_differ() -> None:
    ppo, grpo = rendered("simplerl/qwen2.5-math-7b"), rendered("simplerl/qwen2.5-math-7b-grpo")
    different = {flag for flag in ppo.keys() | grpo.keys() if ppo.get(flag) != grpo.get(flag)}
    one_node = {
        "train.colocate_all", "train.colocate_actor_ref", "vllm.enable_sleep", "ds.enable_sleep", "vllm.num_engines",
        "vllm.gpu_memory_utilization",
    }  # fmt: skip
    critic = {
        "critic.num_gpus_per_node", "critic.adam.lr", "critic.value_clip", "algo.advantage.gamma",
        "algo.advantage.lambd",
    }  # fmt: skip
    assert different == {"algo.advantage.estimator", "reward.clip_range", *critic, *one_node}


@needs.published(TRAINING_PATH)
def test_the_prompt_is_the_published_one_for_every_problem() -> None:
    published = json.loads((needs.DATA / TRAINING_PATH).read_text(encoding="utf-8"))
    prompt = prompts.load("simplerl")
    assert [prompt.render(row["question"], None) for row in published] == [row["input"] for row in published]
    assert len(published) == PROBLEMS and not published[0]["input"].endswith("\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("completion", "value", "verdict"),
    [
        ("so it is \\boxed{15}", 1.0, "correct"),
        ("so it is \\boxed{\\frac{30}{2}}", 1.0, "correct"),
        ("so it is \\boxed{30}", -0.5, "wrong"),
        ("so it is 15", -1.0, "no_answer"),  # right, but a missing box overrides it
        ("", -1.0, "no_answer"),
        ("so it is \\boxed{", -0.5, "no_answer"),
        ("first \\boxed{30}, no: \\boxed{15}", 1.0, "correct"),
        ("I boxed it: 15", -0.5, "no_answer"),  # the published code looks for the word alone
    ],
)
def test_reward(completion: str, value: float, verdict: str) -> None:
    (judged,) = boxed_answer([completion], [problem_from_columns("math", "15", "{}")])
    assert (judged.value, judged.verdict) == (value, verdict)
    assert judged.format_error == ("boxed" not in completion)


@pytest.mark.slow
def test_a_problem_without_a_usable_answer_is_left_out() -> None:
    problems = [problem_from_columns("math", "", "{}")] * 2
    judged = boxed_answer(["\\boxed{15}", "fifteen"], problems)
    assert [one.value for one in judged] == [None, -1.0]

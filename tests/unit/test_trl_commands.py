"""What a command of TRL says of processes, truth values, numbers and data, however it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from frameworks import command_parser
from frameworks.adapter import frameworks_with
from tests.translated_pages import printed_page
from tests.user_errors import refused
from translate.settings_of_text import settings_of_text
from translate.translation import read_settings

TRL = command_parser.load("trl")
OTHERS = [name for name in frameworks_with("command_parser") if name != "trl"]
BATCH = "--num_generations 8 --per_device_train_batch_size 8 --gradient_accumulation_steps 4"
OPTIONS = f"--model_name_or_path m --dataset_name d {BATCH}"


def settings(text: str) -> dict[str, Any]:
    return settings_of_text(TRL, text, Path(), {}, None)


def common(text: str) -> dict[str, Any]:
    return read_settings(TRL, settings(text))[0].common


def page(text: str, target: str, **options: Any) -> str:
    return printed_page(text, "trl", target, **options)


def launcher(text: str) -> str:
    return next(line for line in page(text, "trl").split("\n") if line.endswith('"${settings[@]}"'))


def listed(text: str, title: str) -> str:
    """The block of a page that has a title."""
    block = re.search(rf"^# {title}.*\n((?:#   .*\n?)*)", text, re.MULTILINE)
    assert block, text
    return block[1]


@pytest.mark.parametrize(
    ("start", "processes", "machines"),
    [
        ("deepspeed --num_gpus 4 grpo.py", 4, None),
        ("deepspeed --num_nodes=2 --num_gpus=4 grpo.py", 8, 2),
        ("deepspeed --include localhost:0,1,2,3 grpo.py", 4, None),
        ("deepspeed --include=host1:0,1@host2:2,3 grpo.py", 4, 2),
        ("python -m deepspeed.launcher.runner --num_gpus 2 grpo.py", 2, None),
        ("CUDA_VISIBLE_DEVICES=0,1 deepspeed grpo.py", 2, None),
        ("accelerate launch --multi_gpu --gpu_ids 0,1,2,3 grpo.py", 4, None),
        ("accelerate launch --num_machines 2 --gpu_ids 0,1 grpo.py", 4, 2),
        ("accelerate launch --num_processes 2 --num-processes=4 grpo.py", 4, None),
        ("python3.11 -m accelerate.commands.launch --num_processes 4 grpo.py", 4, None),
        ("export CUDA_VISIBLE_DEVICES=2,3,4\naccelerate launch grpo.py", 3, None),
        ("trl grpo --num_processes 4 --accelerate_config zero2", 4, 1),
        ("trl grpo --accelerate_config fsdp2", 8, 1),
        ("trl grpo --accelerate_config single_gpu", 1, 1),
        ("torchrun grpo.py", 1, None),
        ("torchrun --nnodes=2:2 --nproc-per-node 4 grpo.py", 8, 2),
        ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node gpu grpo.py", 2, None),
        ("uv run --with trl --with deepspeed torchrun --nproc_per_node 4 grpo.py", 4, None),
        ("srun --nodes 4 torchrun --nnodes 4 --nproc_per_node 2 -m trl.scripts.grpo", 8, 4),
    ],
)
def test_every_launchers_own_count_of_processes_is_counted(start: str, processes: int, machines: int | None) -> None:
    read = common(f"{start} {OPTIONS}")
    assert read["batch.prompts_per_step"] == 4 * processes
    assert read["hardware.gpus"] == processes and read.get("hardware.nodes") == machines


@pytest.mark.parametrize(
    "start",
    ["torchrun --nnodes=1:2 --nproc_per_node auto", "torchrun --nnodes=1:2 --nproc_per_node 4",
     "torchrun --nproc_per_node=gpu", "torchrun --nproc_per_node cpu", "deepspeed --exclude localhost:0",
     "deepspeed --include host1@host2:0", "deepspeed --hostfile hosts --num_gpus 4", "deepspeed --num_nodes 2",
     "accelerate launch --num_processes=-1", "accelerate launch --num_machines 2"],
)  # fmt: skip
def test_a_count_that_only_the_machine_knows_is_asked_for(start: str) -> None:
    for target in (*OTHERS, "trl", "run-file"):
        with refused("open-process-count"):
            page(f"{start} grpo.py {OPTIONS}", target)
    assert "--rollout.batch_size 16 " in page(f"{start} grpo.py {OPTIONS}", "openrlhf", gpus=4)


@pytest.mark.parametrize("start", ["trl grpo", "python grpo.py", "accelerate launch grpo.py", "deepspeed grpo.py", ""])
def test_one_process_is_assumed_aloud(start: str) -> None:
    for target in (*OTHERS, "run-file"):
        assert "does not say how many processes train" in page(f"{start} {OPTIONS}", target)
        assert "how many processes train" not in page(f"{start} {OPTIONS}", target, gpus=2)


@pytest.mark.parametrize(
    ("start", "written", "left_out"),
    [
        ("deepspeed --num_gpus 4 --master_port 29501 --save_pid grpo.py",
         "accelerate launch --main_process_port 29501 --multi_gpu --num_processes 4 -m trl.scripts.grpo",
         "save_pid=True"),
        ("torchrun --nproc_per_node=4 --nnodes=2 --node_rank 1 --master_addr 10.0.0.1 --standalone grpo.py",
         "accelerate launch --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1 --multi_gpu --num_processes 8 "
         "-m trl.scripts.grpo", "standalone=True"),
        ("torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint h:29 --rdzv_id 7 grpo.py",
         "accelerate launch --main_process_ip h --main_process_port 29 --num_machines 2 --rdzv_backend c10d "
         "--multi_gpu --machine_rank 0 --num_processes 2 -m trl.scripts.grpo", "rdzv_id=7"),
        ("python -u -m torch.distributed.run --nproc_per_node 1 -m trl.scripts.grpo",
         "accelerate launch --num_processes 1 -m trl.scripts.grpo", "u=True"),
        ("uv run --with trl --with vllm grpo.py", "accelerate launch -m trl.scripts.grpo", "with=['trl', 'vllm']"),
        ("accelerate launch --multi_gpu --zero3_init_flag true --mixed_precision no -q grpo.py",
         "accelerate launch --multi_gpu --zero3_init_flag true --mixed_precision no --quiet -m trl.scripts.grpo", ""),
        ("trl grpo --accelerate_config zero2",
         "trl grpo --num_processes 8 --num_machines 1 --zero_stage 2 --accelerate_config zero2", ""),
    ],
)  # fmt: skip
def test_launchers_become_accelerates_words(start: str, written: str, left_out: str) -> None:
    assert launcher(f"{start} {OPTIONS}") == f'{written} "${{settings[@]}}"'
    for target, title in (("trl", "Of the text's launcher alone"), ("verl", "Concerns the source's machine")):
        assert not left_out or f"launcher.{left_out}" in listed(page(f"{start} {OPTIONS}", target), title)


def test_what_a_file_of_accelerates_says_stays_there(tmp_path: Path) -> None:
    (tmp_path / "zero3.yaml").write_text("num_processes: 8\nmixed_precision: bf16\ndeepspeed_config: {zero_stage: 3}\n")
    script = tmp_path / "train.sh"
    script.write_text(f"accelerate launch --config_file zero3.yaml --mixed_precision no grpo.py {OPTIONS}\n")
    assert "--mixed_precision no" in launcher(str(script)) and "bf16" not in launcher(str(script))
    assert "accelerate.config_file.mixed_precision=bf16" in page(str(script), "verl")
    (tmp_path / "zero3.yaml").write_text("num_processes: null\n")
    assert "does not say how many processes train" in page(str(script), "verl")


@pytest.mark.parametrize(
    ("written", "value"),
    [*((f"--use_peft {word}", True) for word in ("yes", "True", "t", "Y", "1")), ("--use_peft", True),
     *((f"--use_peft={word}", False) for word in ("no", "FALSE", "f", "n", "0")), ("--use-peft no", False)],
)  # fmt: skip
def test_truth_values_are_read_in_all_of_trls_words(written: str, value: bool) -> None:
    assert settings(f"trl grpo {written}")["use_peft"] is value
    assert ("lora.r" in common(f"trl grpo {OPTIONS} {written}")) is value


def test_every_setting_that_is_on_by_default_can_be_turned_off_by_its_own_flag() -> None:
    on = [name for name, default in TRL.defaults.items() if default is True]
    assert "shuffle_dataset" in on
    for name in on:
        assert settings(f"trl grpo --no_{name} --no-{name.replace('_', '-')}") == {name: False}
        assert f"    --{name} False" in page(f"trl grpo {OPTIONS} --no_{name}", "trl")


def test_a_word_of_another_type_is_refused() -> None:
    for written, code in (("--use_vllm maybe", "not-a-truth-value"), ("--epsilon_high None", "not-a-number")):
        with refused(code):
            page(f"trl grpo {OPTIONS} {written}", "trl")


YAML = """
learning_rate: 1e-6
beta: "1e-3"
num_generations: 8.0
steps_per_generation: "4"
per_device_train_batch_size: 8
use_peft: "no"
use_vllm: n
epsilon_high: null
top_k: null
reward_weights: [0.5, 1]
report_to: [wandb, tensorboard]
generation_kwargs: {temperature: 0.7}
liger_kernel_config: {swiglu: false}
scale_rewards: false
num_processes: 4
"""


@pytest.mark.parametrize("as_file", [False, True])
def test_yaml_values_are_what_trls_parser_makes_of_them(as_file: bool, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(YAML)
    text = f"trl grpo --config {tmp_path / 'grpo.yaml'}" if as_file else YAML
    read = common(text)
    assert (read["optimizer.learning_rate"], read["objective.kl_coefficient"]) == (1e-6, 1e-3)
    assert read["batch.samples_per_prompt"] == 8 and read["batch.prompts_per_step"] == 16
    assert "lora.r" not in read and read["rollout.engine"] == "transformers"
    assert (read["rollout.temperature"], read["objective.scale_rewards"]) == (0.7, "none")
    printed = page(text, "trl")
    assert (
        "--reward_weights 0.5 1\n" in printed
        and "--scale_rewards none" in printed
        and "None" not in printed.split("settings=(")[1]
    )
    for name in ("top_k=None", "report_to=", "liger_kernel_config="):  # which no command can state
        assert name in listed(printed, "Not known to this translator")


DATA = {
    "model_revision": ("abc", "main"), "dataset_config": ("main", None),
    "dataset_train_split": ("train[:1000]", "train"),
    "test_split_size": ("0.1", None), "remove_unused_columns": ("True", "False"), "streaming": ("True", "no"),
    "dataset_streaming": ("True", "False"), "label_names": ("answer", None),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_what_chooses_weights_and_data_is_never_of_the_machine(name: str) -> None:
    changed, default = DATA[name]
    text = f"trl grpo {OPTIONS} --{name} '{changed}'"
    for target in OTHERS:
        assert f"{name}={changed}, because " in listed(page(text, target), "Cannot be expressed")
        if default:
            same = page(f"trl grpo {OPTIONS} --{name} {default}", target)
            assert f"{name}=" in listed(same, "The same by default")
    assert f"# Not in a run file: {name}={changed}" in page(text, "run-file")
    assert re.search(rf"    --{name} '?{re.escape(changed)}", page(text, "trl"))


@pytest.mark.parametrize(
    ("accumulated", "generation", "iterations", "prompts", "steps"),
    [(4, 8, 1, (8, 4), 50), (8, 8, 1, (8, 8), 100), (8, 4, 1, (8, 8), 100), (8, 4, 2, (8, 8), 50),
     (2, 3, 1, (2, 2), 100), (2, 6, 2, (6, 2), 17)],
)  # fmt: skip
def test_a_step_is_an_update_where_an_update_is_larger_than_a_generation(
    accumulated: int, generation: int, iterations: int, prompts: tuple[int, int], steps: int
) -> None:
    text = (
        f"accelerate launch --num_processes 1 grpo.py {OPTIONS} --gradient_accumulation_steps {accumulated} "
        f"--steps_per_generation {generation} --num_iterations {iterations} --max_steps 100"
    )
    read = common(text)
    assert (read["batch.prompts_per_step"], read["batch.prompts_per_update"], read["steps"]) == (*prompts, steps)
    mixed = (accumulated, generation, iterations) in ((8, 4, 2), (2, 3, 1))
    for target in OTHERS:
        printed = page(text, target)
        assert (f"#   steps_per_generation={generation}, because" in printed) is mixed
        assert (f"steps_per_generation={generation}" in printed.split("\n)\n")[0]) is not mixed
    assert f"--steps_per_generation {generation}" in page(text, "trl")


@pytest.mark.parametrize(
    ("written", "code"),
    [("--generation_batch_size 64 --steps_per_generation 4", "settings-conflict"),
     ("--generation_batch_size 60", "batch-does-not-divide"), ("--steps_per_generation 0", "batch-does-not-divide"),
     ("--per_device_train_batch_size 4 --steps_per_generation 1", "batch-does-not-divide")],
)  # fmt: skip
def test_a_generation_that_trl_refuses_is_refused(written: str, code: str) -> None:
    for target in (*OTHERS, "trl", "run-file"):
        with refused(code):
            page(f"accelerate launch --num_processes 1 grpo.py {OPTIONS} {written}", target)


@pytest.mark.parametrize(
    ("written", "stated", "idle"),
    [("--warmup_steps 0 --warmup_ratio 0.1", "warmup_steps 0.1", "warmup_steps=0"),
     ("--warmup_ratio 0.1 --warmup_steps 0", "warmup_steps 0.1", "warmup_steps=0"),
     ("--warmup_ratio 0.1 --warmup_steps 5", "warmup_steps 5.0", "warmup_ratio=0.1"),
     ("--warmup_ratio 0 --warmup_steps 0", "warmup_steps 0.0", ""),
     ("--vllm_importance_sampling_clip_max 3 --vllm_importance_sampling_cap 2", "vllm_importance_sampling_clip_max 2.0",
      "vllm_importance_sampling_clip_max=3.0"),
     ("--eval_strategy no --evaluation_strategy steps", "eval_strategy steps", "eval_strategy=no"),
     ("--torch_dtype float16 --dtype bfloat16", "dtype bfloat16", "torch_dtype=float16")],
)  # fmt: skip
def test_of_two_names_of_one_setting_the_other_is_listed(written: str, stated: str, idle: str) -> None:
    text = f"accelerate launch --num_processes 1 grpo.py {OPTIONS} --use_vllm {written}"
    assert re.search(rf"^    --{stated}\b", page(text, "trl"), re.MULTILINE)
    for target in (*OTHERS, "trl"):
        assert not idle or f"#   {idle}" in page(text, target)
    for target in OTHERS:
        printed = page(text, target)
        assert all(f"{name}={value}" in printed for name, value in settings(f"trl grpo {written}").items())


NULL = f"{YAML}model_name_or_path: m\ndataset_name: d\n"


@pytest.mark.parametrize(
    ("name", "title"),
    [("max_completion_length", "Cannot be expressed"), ("max_grad_norm", "Cannot be expressed"),
     ("lr_scheduler_type", "Cannot be expressed"), ("loss_type", "Cannot be expressed"),
     ("top_k", "The same by default"), ("mask_truncated_completions", "Cannot be expressed"),
     ("epsilon_high", "The same by default")],
)  # fmt: skip
def test_null_is_not_the_default(name: str, title: str) -> None:
    text = re.sub(rf"^{name}:.*\n", "", NULL, flags=re.MULTILINE) + f"{name}: null\n"
    for target in OTHERS:
        assert f"{name}=None, " in listed(page(text, target), title)
    assert f"{name}: null" not in page(text, "run-file")


@pytest.mark.parametrize("name", ["max_steps", "num_generations", "warmup_steps", "num_iterations", "save_steps"])
def test_null_is_no_number_to_calculate_with(name: str) -> None:
    text = re.sub(rf"^{name}:.*\n", "", NULL, flags=re.MULTILINE) + f"{name}: null\n"
    for target in (*OTHERS, "trl", "run-file"):
        with refused("not-a-number"):
            page(text, target)


ENVIRONMENT = "env: {NCCL_DEBUG: INFO, CUDA_VISIBLE_DEVICES: '0,1', A: true}\n"


@pytest.mark.parametrize(
    ("start", "processes"),
    [("", 2), ("trl grpo", 2), ("trl grpo --num_processes 4", 4), ("A=1 accelerate launch grpo.py", 1)],
)
def test_the_environment_of_a_configuration_is_exported(start: str, processes: int, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(f"{ENVIRONMENT}model_name_or_path: m\ndataset_name: d\n")
    text = f"{start} --config {tmp_path / 'grpo.yaml'}" if start else (tmp_path / "grpo.yaml").read_text()
    assert common(text)["hardware.gpus"] == processes
    printed = page(text, "trl")
    assert {"export NCCL_DEBUG=INFO", "export CUDA_VISIBLE_DEVICES=0,1", "export A=True"} <= {*printed.split("\n")}
    assert "--env" not in printed
    for target in OTHERS:
        assert "export NCCL_DEBUG=INFO" in listed(page(text, target), "Concerns the source's machine")


def test_an_option_env_is_accelerates() -> None:
    assert "--env A=1 --env B=2" in launcher(f"trl grpo --env A=1 --env B=2 {OPTIONS}")
    with refused("not-a-mapping"):
        settings(f"{YAML}env: 3\n")


@pytest.mark.parametrize(
    ("written", "code"),
    [("", "missing-setting"), ("--lr_scheduler_kwargs '{}'", "missing-setting"),
     ("""--lr_scheduler_kwargs '{"min_lr": 1, "min_lr_rate": 1}'""", "settings-conflict"),
     ("""--lr_scheduler_kwargs '{"min_lr": "x"}'""", "not-a-number"),
     ("""--learning_rate 0 --lr_scheduler_kwargs '{"min_lr": 1}'""", "not-a-number"),
     ("--lr_scheduler_kwargs min_lr", "not-a-mapping")],
)  # fmt: skip
def test_a_schedules_end_that_trl_refuses_is_refused(written: str, code: str) -> None:
    for name in ("cosine_with_min_lr", "cosine_warmup_with_min_lr"):
        with refused(code):
            common(f"trl grpo {OPTIONS} --lr_scheduler_type {name} {written}")


@pytest.mark.parametrize(
    "written",
    ["--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs $X", "--generation_kwargs $X"],
)
def test_a_mapping_that_a_shell_fills_in_is_asked_for(written: str) -> None:
    for target in OTHERS:
        with refused("open-setting"):
            page(f"trl grpo {OPTIONS} {written}", target)


def test_a_recipe_that_is_a_scripts_first_word_is_read(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(NULL)
    read = common(f"accelerate launch grpo.py {tmp_path / 'recipe.yaml'} --learning_rate=2e-6")
    assert read["batch.samples_per_prompt"] == 8 and read["optimizer.learning_rate"] == 2e-6
    with refused("missing-file"):
        common("python grpo.py another.yaml --learning_rate=2e-6")


@pytest.mark.parametrize(
    ("start", "word"),
    [("trl grpo", "recipe.yaml"), ("python grpo.py", "@args.txt"), ("python -m trl.scripts.grpo", "more"),
     ("python grpo.py", "$@")],
)  # fmt: skip
def test_a_word_before_the_options_is_listed(start: str, word: str) -> None:
    for target in (*OTHERS, "trl"):
        assert f"argument={word}: " in listed(page(f"{start} '{word}' {OPTIONS}", target), "Not known")
    assert f"# Not in a run file: argument={word}" in page(f"{start} '{word}' {OPTIONS}", "run-file")


@pytest.mark.parametrize(
    "start", ["trl grpo --config", "accelerate launch grpo.py --config", "accelerate launch grpo.py"]
)
@pytest.mark.parametrize("name", ["g.yaml", "./runs/../g.yaml", "g_$RUN.yaml"])
def test_configurations_that_the_script_writes_are_read(start: str, name: str) -> None:
    script = (
        "N=4\ncat > a.yaml <<EOF\nnum_processes: $N\nEOF\nLR=2e-6\n"
        f'cat > "{name}" <<EOF\nlearning_rate: $LR\nseed: 7\nEOF\n'
        f'N=2; {start.replace("launch", "launch --config_file=a.yaml")} "{name}" --seed 8 --run_name ${{RUN}}'
    )
    read = settings_of_text(TRL, script, Path(), {}, None)
    assert (read["learning_rate"], read["seed"]) == (2e-6, 8)
    assert read.get("accelerate.num_processes") == (4 if "launch" in start else None)


def test_what_a_written_configuration_leaves_open_is_said() -> None:
    script = "cat > g.yaml <<EOF\noutput_dir: $WHERE\nseed: 7\nEOF\ntrl grpo --config g.yaml"
    assert settings_of_text(TRL, script, Path(), {}, None).left_open == ["$WHERE"]

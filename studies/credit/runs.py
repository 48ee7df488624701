"""The runs of `snakemake study_credit`: the same task, base model, prompts, samples and steps."""

from __future__ import annotations

CRITIC, GRPO, NO_STD, PROCESS = "PPO", "GRPO", "GRPO without std", "GRPO with process reward"
RUNS = {
    CRITIC: "maze/ppo-0.5b-same-samples",
    GRPO: "maze/grpo-0.5b",
    NO_STD: "maze/grpo-0.5b-no-std",
    PROCESS: "maze/grpo-0.5b-process",
}
FEWEST = 2  # trainings of each

#!/bin/bash
# A GRPO training as people launch it: variables, continued lines, a comment, a log.
set -x
LR=2e-6
max_response_length=$((256 * 4))   # tokens
GPUS=${GPUS:-4}
export VLLM_LOGGING_LEVEL=WARN

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=$HOME/data/train.parquet \
    data.train_batch_size=64 \
    data.max_prompt_length=512 \
    data.max_response_length=$max_response_length \
    actor_rollout_ref.model.path='Qwen/Qwen2.5-3B' \
    actor_rollout_ref.actor.optim.lr=${LR} \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.ppo_micro_batch_size=16 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.kl_loss_coef=0.001 \
    actor_rollout_ref.actor.kl_loss_type=low_var_kl \
    actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.actor.entropy_coeff=0 \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
    +trainer.val_before_train=False \
    trainer.logger=['console','wandb'] \
    trainer.n_gpus_per_node=$GPUS \
    trainer.save_freq=20 \
    trainer.total_epochs=5 "$@" 2>&1 | tee train.log

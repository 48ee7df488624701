# Seven processes train, and TRL's vLLM server has a GPU of its own.
trl vllm-serve --model Qwen/Qwen2.5-Math-7B &
ACCELERATE_LOG_LEVEL=info accelerate launch --num_processes=7 --main_process_port 29501 \
    src/my_project/grpo.py \
    --model_name_or_path Qwen/Qwen2.5-Math-7B --dataset_name me/problems \
    --per_device_train_batch_size 16 --gradient_accumulation_steps 8 --num_generations 7 \
    --max_completion_length 1024 --max_prompt_length 512 \
    --learning_rate 3.0e-06 --lr_scheduler_type cosine --warmup_ratio 0.1 --num_train_epochs 1 \
    --beta 0.04 --loss_type bnpo --scale_rewards False --mask_truncated_completions \
    --use_vllm --vllm_mode server --torch_dtype bfloat16 --bf16 \
    --reward_funcs accuracy format --output_dir out --report_to wandb

MODEL=Qwen/Qwen2.5-7B
ray start --head --num-gpus 8
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"working_dir": "/project"}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 8 --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
   --critic_num_nodes 1 --critic_num_gpus_per_node 8 \
   --vllm_num_engines 8 --colocate_all_models \
   --pretrain $MODEL --prompt_data me/problems --input_key question \
   --micro_train_batch_size 2 --train_batch_size 128 --micro_rollout_batch_size 4 --rollout_batch_size 256 \
   --n_samples_per_prompt 4 --max_epochs 1 --num_episodes 2 \
   --prompt_max_len 1024 --generate_max_len 3000 --temperature 0.6 \
   --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 --init_kl_coef 0.01 --lambd 0.95 \
   --eps_clip_low_high 0.2 0.27 --zero_stage 3 --bf16 --flash_attn --gradient_checkpointing \
   --remote_rm_url reward.py --save_path out --use_wandb KEY

"""Writes what trainers leave that is no model folder, by the real libraries, from a tiny model: KIND MODEL FOLDER.

All but adapters are started by torchrun, with two processes.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM


def adapter(model: Path, folder: Path) -> None:
    """A LoRA adapter, with the model that it makes, in `expected/`."""
    adapted_model(model, folder).save_pretrained(folder)


def fsdp(model: Path, folder: Path, version: int, kind: str) -> None:
    """As accelerate's Accelerator.save_state saves a model of FSDP 1 or 2; the configuration is beside it.

    accelerate itself shards on GPUs only, so that the model is sharded here.
    """
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from accelerate.utils import save_fsdp_model
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    accelerator = Accelerator(cpu=True)
    whole = AutoModelForCausalLM.from_pretrained(model)
    if version == 1:
        sharded = FullyShardedDataParallel(whole, device_id=torch.device("cpu"), use_orig_params=True)
    else:
        for layer in whole.model.layers:
            fully_shard(layer)
        sharded = fully_shard(whole)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=version, state_dict_type=kind)
    save_fsdp_model(plugin, accelerator, sharded, str(folder))
    if accelerator.is_main_process:
        copy_configuration(model, folder)
    torch.distributed.destroy_process_group()


def adapted_model(model: Path, folder: Path) -> torch.nn.Module:
    """A model with LoRA matrices that change it; the model that they make is in `expected/`."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(model), settings)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    whole = copy.deepcopy(adapted).merge_and_unload()
    whole.save_pretrained(folder / "expected")
    return adapted


def verl_shards(model: Path, folder: Path, has_adapter: bool = False) -> None:
    """As verl's FSDPCheckpointManager saves an actor of FSDP2, of LoRA with the file of its scale."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    sharded = adapted_model(model, folder) if has_adapter else AutoModelForCausalLM.from_pretrained(model)
    layers = [one for name, one in sharded.named_modules() if name.rpartition(".")[0].endswith("layers")]
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("fsdp",))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    actor = folder / "actor"
    actor.mkdir(parents=True, exist_ok=True)
    torch.save(sharded.state_dict(), actor / f"model_world_size_{size}_rank_{rank}.pt")
    if rank == 0:
        (actor / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": size}))
        copy_configuration(model, actor / "huggingface")
        if has_adapter:
            scale = {"r": 4, "lora_alpha": 8, "task_type": "CAUSAL_LM"}
            (actor / "lora_train_meta.json").write_text(json.dumps(scale))
    dist.destroy_process_group()


def deepspeed(model: Path, folder: Path, stage: int) -> None:
    """As OpenRLHF's strategy saves an actor; the optimizer has made no step."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # else its kernel is compiled, for a minute
    deepspeed.init_distributed("gloo")
    actor = AutoModelForCausalLM.from_pretrained(model)
    configuration = {
        "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage},
        "zero_force_ds_cpu_optimizer": False,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
    }  # fmt: skip
    engine, *_ = deepspeed.initialize(model=actor, model_parameters=actor.parameters(), config=configuration)
    engine.save_checkpoint(str(folder / "_actor"), tag="global_step10")


def copy_configuration(model: Path, folder: Path) -> None:
    """All files of a model folder but its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in model.iterdir():
        if file.is_file() and "safetensors" not in file.name:
            shutil.copy(file, folder)


if __name__ == "__main__":
    kind, model, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    torch.manual_seed(0)
    if kind.startswith("zero"):
        deepspeed(model, folder, int(kind[-1]))
    elif kind.startswith("fsdp"):
        fsdp(model, folder, int(kind[4]), f"{kind[6:].upper()}_STATE_DICT")
    else:
        {"adapter": adapter, "verl_shards": verl_shards, "verl_lora": partial(verl_shards, has_adapter=True)}[kind](
            model, folder
        )

"""What the GPU is, and whether it computes in bfloat16: python -m cluster.gpu_smoke.bfloat16 cuda"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Print one line of JSON; exit status 1 where a product in bfloat16 is not that of float32."""
    import torch

    device = sys.argv[1]
    facts = {"device": "CPU", "torch": torch.__version__, "CUDA": torch.version.cuda}
    if device == "cuda":
        capability = ".".join(map(str, torch.cuda.get_device_capability()))
        memory = torch.cuda.get_device_properties(0).total_memory / 1e9
        facts |= {"device": f"{torch.cuda.get_device_name()}, {memory:.0f} GB, compute capability {capability}"}
    torch.manual_seed(0)
    left, right = torch.randn(2, 512, 512, device=device)
    exact = left @ right
    off = ((left.bfloat16() @ right.bfloat16()).float() - exact).abs().mean() / exact.abs().mean()
    print(json.dumps({**facts, "bfloat16, relative error": round(float(off), 5)}))
    if not off < 0.02:  # 8 bits of mantissa round by 0.2 % on average
        sys.exit("Error: a product in bfloat16 differs from float32's: see the driver and the GPU with nvidia-smi")


if __name__ == "__main__":
    main()

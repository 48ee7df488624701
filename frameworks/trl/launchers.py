"""How a command starts TRL's processes: accelerate, torchrun, deepspeed, `trl` or Python; in accelerate's words.

Settings of a text have three names here: `accelerate.NAME` is an option of `accelerate launch`, also one that another
launcher calls otherwise; `accelerate.config_file.NAME` is in accelerate's configuration file, which keeps it; and
`launcher.NAME` is an option that accelerate does not have. launchers.yaml has the tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from frameworks.command_parser import set_options
from frameworks.command_settings import option_in_words
from frameworks.trl.typed_values import OPEN, Option, options_of
from system.errors import UserError
from system.yaml_files import mapping_of_text, read_yaml

OF_ACCELERATE, OF_LAUNCHER = "accelerate.", "launcher."
OF_FILE = f"{OF_ACCELERATE}config_file."
PROCESSES, MACHINES = f"{OF_ACCELERATE}num_processes", f"{OF_ACCELERATE}num_machines"
DISTRIBUTED = ("multi_gpu", "use_deepspeed", "use_fsdp", "use_megatron_lm")  # of which one starts several processes
WHAT_IS_STARTED = ("m", "module")
OF_TRL = "accelerate_config"  # a file or a name, which `trl` replaces by accelerate's config_file
ALL_GPUS = ("auto", "gpu")
REPEATED = ("vm", "env")
NUMBERED = r"\d+(,\d+)*"


@cache
def _tables() -> dict[str, Any]:
    return read_yaml(Path(__file__).with_name("launchers.yaml"))


def is_of_accelerate(name: str) -> bool:
    """Whether `accelerate launch` has an option, or `trl`, which hands it on."""
    names: list[str] = _tables()["accelerate"]
    return name == OF_TRL or name in names or any(name.startswith(group[:-1]) for group in names if group[-1] == "*")


def program(launcher: Sequence[str]) -> str:
    """What reads the last options before the training's name; `trl` where there is nothing."""
    return _split(launcher)[0] if launcher else "trl"


def settings_of_launcher(
    launcher: Sequence[str],
    handed_on: Iterable[Option],
    environment: Mapping[str, str],
    written: Mapping[str, str],
    folder: Path,
) -> dict[str, Any]:
    """What starts the processes, as settings.

    Args:
        launcher: the words before the training's module or script.
        handed_on: options after it that `trl` hands on to accelerate.
        environment: variables that are set for the command.
        written: files that the script writes.
        folder: where other configuration files are searched.

    Raises:
        UserError: there is no such configuration file.
    """
    reader, before, own = _split(launcher)
    options = _two_in_one({name: _last(name, value) for name, value in _joined([*own, *handed_on]).items()})
    launched, rest = _in_words_of_accelerate(reader, options)
    content = _of_accelerate(launched, written, folder)
    launched = _layout(content) | launched
    count = _processes(reader, options | launched, environment)
    if content.get("distributed_type") == "NO" and not any(name in launched for name in DISTRIBUTED):
        count = 1  # accelerate starts one, also where the file has another number
    launched |= _as_torch_starts(reader, launched, count) | ({} if count is None else {"num_processes": count})
    return {
        **{OF_LAUNCHER + name: value for name, value in (_joined(before) | rest).items()},
        **{OF_FILE + name: value for name, value in content.items()},
        **{OF_ACCELERATE + name: value for name, value in launched.items()},
    }


def launch_words(settings: Mapping[str, Any]) -> list[str]:
    """The words that start TRL's script with a text's settings.

    Args:
        settings: of a text, under the names above; what is not accelerate's own is left out.
    """
    own = {
        name.removeprefix(OF_ACCELERATE): value for name, value in settings.items()
        if name.startswith(OF_ACCELERATE) and not name.startswith(OF_FILE)
    }  # fmt: skip
    if own.get("num_processes") == 1:
        own.pop("multi_gpu", None)
    options = [word for name, value in own.items() for word in _as_words(name, value)]
    return ["trl", "grpo", *options] if OF_TRL in own else ["accelerate", "launch", *options, "-m", "trl.scripts.grpo"]


def is_of_the_machine(count: Any) -> bool:
    """Whether a number of processes is not in the text, but whatever the machine has."""
    return _is_open(count) or (isinstance(count, int) and count < 1)


def configuration(name: str, written: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What is in a YAML file that a command names.

    Args:
        name: of the file.
        written: files that the script writes.
        folder: of the script; other files are searched here, and from it or a folder above it.

    Raises:
        UserError: there is no such file.
    """
    if name in written:
        return mapping_of_text(written[name], name)
    if file := _file_of(name, folder):
        return read_yaml(file)
    if variables := re.findall(r"\$\{?(\w+)", name):
        sentence = f"the command names {name}, of which the text does not say all; add {set_options(variables)}"
        raise UserError(sentence, code="unknown-settings", variables=variables)
    raise UserError(
        f"the command names {name}, which is not here; run this in the folder that the path starts from",
        code="missing-file",
        path=name,
    )


def _file_of(name: str, folder: Path) -> Path | None:
    starts = (Path(), folder, *folder.absolute().parents)
    return next((start / name for start in starts if (start / name).is_file()), None)


def _split(launcher: Sequence[str]) -> tuple[str, list[Option], list[Option]]:
    """The last program of the words, the options before it, and its own; Python's are not the training's."""
    starts = [number for number in range(len(launcher)) if _program(launcher, number)]
    reader = _program(launcher, starts[-1]) if starts else "python" if launcher else "trl"
    bounds = [0, *starts, len(launcher)]
    parts = [options_of(launcher[start:end]) for start, end in pairwise(bounds)]
    own = [] if reader == "python" else parts.pop()
    return reader, [option for part in parts for option in part], own


def _program(launcher: Sequence[str], number: int) -> str:
    """What a word starts; nothing if it names a package or an environment."""
    word = re.sub(r"^python[\d.]+$", "python", launcher[number].rpartition("/")[2])
    is_name = number and launcher[number - 1] in _tables()["takes_a_name"]
    if is_name or (word == "trl" and number != len(launcher) - 1):
        return ""
    return str(_tables()["readers"].get(word, ""))


def _joined(options: Iterable[Option]) -> dict[str, Any]:
    """Options by name with their value, all their values, or True; those that say what is started are left out."""
    texts: dict[str, list[str]] = {}
    for name, own in options:
        if name not in WHAT_IS_STARTED:
            texts.setdefault(name, []).extend(own)
    values = {name: [_value(text) for text in own] or [True] for name, own in texts.items()}
    return {name: own if len(own) > 1 else own[0] for name, own in values.items()}


def _last(name: str, value: Any) -> Any:
    """The value that counts of an option that is given several times."""
    return value[-1] if isinstance(value, list) and name not in REPEATED else value


def _value(text: str) -> int | str:
    number = re.fullmatch(r"(-?\d+)(?::\1)?", text)  # torchrun's 2:2 is 2
    return int(number[1]) if number else text


def _two_in_one(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with what torchrun's rendezvous and DeepSpeed's filter say under one name, under the usual ones."""
    spelled: dict[str, Any] = {}
    if "rdzv_endpoint" in options:
        address, _, port = str(options["rdzv_endpoint"]).partition(":")
        spelled = {"master_addr": address, **({"master_port": _value(port)} if port else {})}
    hosts = [host.partition(":") for host in str(options.get("include", "")).split("@")]
    counts = {len(slots.split(",")) if re.fullmatch(NUMBERED, slots) else 0 for _, _, slots in hosts}
    if len(counts) == 1 and 0 not in counts:
        spelled |= {"num_gpus": counts.pop()} | ({"num_nodes": len(hosts)} if len(hosts) > 1 else {})
        spelled |= {"gpu_ids": hosts[0][2]} if [host for host, _, _ in hosts] == ["localhost"] else {}
    said = {"rdzv_endpoint"} | ({"include"} if "gpu_ids" in spelled else set())
    return spelled | {name: value for name, value in options.items() if name not in said}


def _in_words_of_accelerate(reader: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of a launcher that accelerate has, under its names, and the others."""
    counterparts: dict[str, str] = dict(_tables()["counterparts"].get(reader, {}))
    if _is_open(options.get("nnodes")):  # elastic
        del counterparts["nnodes"]
    if reader in ("accelerate", "trl"):
        counterparts |= {name: name for name in options if is_of_accelerate(name)}
    launched = {counterparts[name]: value for name, value in options.items() if name in counterparts}
    counted = _tables()["counted"].get(reader)
    return launched, {name: value for name, value in options.items() if name not in counterparts and name != counted}


def _of_accelerate(launched: Mapping[str, Any], written: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What the configuration file of accelerate says that a command names."""
    name = str(launched.get(OF_TRL, launched.get("config_file", "")))
    packaged: dict[str, Any] = _tables()["packaged"] if OF_TRL in launched else {}
    if not name or (name in packaged and not _file_of(name, folder)):
        return dict(packaged.get(name, {}))
    return configuration(name, written, folder)


def _layout(content: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration file a training's batch and sharding depend on."""
    every = {**content, **(content.get("deepspeed_config") or {})}
    return {
        name: every[name] for name in ("num_processes", "num_machines", "zero_stage") if every.get(name) is not None
    }


def _processes(reader: str, options: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    """How many processes train, on all machines; text if only the machine knows; None if nothing is said of it."""
    visible = environment.get("CUDA_VISIBLE_DEVICES", "")
    visible_count = len(visible.split(",")) if re.fullmatch(NUMBERED, visible) else None
    machines = options.get("num_machines", 1)
    if reader == "torchrun":
        each = options.get("nproc_per_node", 1)
        return _product(
            nproc_per_node=visible_count or each if each in ALL_GPUS else each, nnodes=options.get("nnodes", 1)
        )
    if reader == "deepspeed":
        undecided = next((name for name in _undecided(options) if name in options), None)
        each = f"--{undecided} {options[undecided]}" if undecided else options.get("num_gpus", visible_count)
        return _product(num_gpus=each, num_nodes=machines)
    ids = str(options.get("gpu_ids", ""))
    each = len(ids.split(",")) if re.fullmatch(NUMBERED, ids) else visible_count
    return None if reader == "python" else options.get("num_processes", _product(gpu_ids=each, num_machines=machines))


def _undecided(options: Mapping[str, Any]) -> list[str]:
    """Options of DeepSpeed that leave the count of GPUs, or of nodes, to files on the machine."""
    filters = [] if "num_gpus" in options else ["include"]
    return [*filters, "exclude", *([] if "num_nodes" in options else ["hostfile"])]


def _product(**factors: Any) -> Any:
    """The product of numbers; None if nothing is said; otherwise the option that does not decide it."""
    said = {name: value for name, value in factors.items() if value is not None}
    for name, value in said.items():
        if not isinstance(value, int) or value < 1:
            return value if re.match(r"--|.*[$`]", str(value)) else f"--{name} {value}"
    count = math.prod(said.values())
    if len(said) == len(factors):
        return count
    return None if count == 1 else ", ".join(f"--{name} {value}" for name, value in said.items())


def _as_torch_starts(reader: str, launched: Mapping[str, Any], count: Any) -> dict[str, Any]:
    """What accelerate needs to be told to start processes as torchrun and deepspeed do."""
    added: dict[str, Any] = {}
    if reader in ("torchrun", "deepspeed") and count not in (None, 1):
        added["multi_gpu"] = True
    if reader == "torchrun" and launched.get("num_machines", 1) != 1:
        added["machine_rank"] = launched.get("machine_rank", 0)
    return added


def _is_open(value: Any) -> bool:
    """Whether text is no number, and nothing that a shell fills in: only the machine knows."""
    return isinstance(value, str) and not OPEN.search(value)


def _as_words(name: str, value: Any) -> list[str]:
    """An option of accelerate; one that is given several times is repeated."""
    if value is True:
        return [f"--{name}"]
    return [word for one in (value if isinstance(value, list) else [value]) for word in option_in_words(name, [one])]

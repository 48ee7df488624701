"""Ray that waits for its own processes for ten minutes: on a busy machine they take longer than Ray's half minute.

    python -m frameworks.ray_patience start --head …

is `ray start`. In a training on one node, where the trainer starts Ray, python_startup/sitecustomize.py installs it.
Each process of a training imports this module when it starts, so it imports little itself.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from frameworks import import_hooks

WAIT_SECONDS = 600.0  # a network file system, too, may take minutes to serve Ray's files
LOOK_SECONDS = 1.0
VARIABLES = {
    # How often a node asks for the head, every two seconds (ray/_private/utils.py)
    "RAY_NUM_REDIS_GET_RETRIES": f"{WAIT_SECONDS / 2:.0f}",
    # How long Ray's other processes try to connect to its Global Control Store
    "RAY_py_gcs_connect_timeout_s": f"{WAIT_SECONDS:.0f}",
}


def start_raylet_again(module: ModuleType) -> None:
    """Have `Node.start_raylet` return when the raylet, Ray's own process of each node, has joined the cluster.

    A raylet ends itself when the Python processes that it starts take more than 15 seconds, and Ray gives up after 30;
    both figures are in Ray's code. Until ten minutes have passed a raylet that has ended is started again.

    Args:
        module: ray._private.node.
    """
    original = module.Node.start_raylet
    services, exceptions = module.ray._private.services, module.ray.exceptions

    def settled(node: Any, process: Any, deadline: float) -> bool:
        """Whether a raylet has joined, not ended; true after the deadline, too, when Ray itself reports what failed."""
        while process.poll() is None:
            try:
                services.get_node(node.gcs_address, node._node_id)  # waits for 30 seconds at most
            except (RuntimeError, exceptions.RaySystemError) as error:
                if time.monotonic() > deadline:
                    return True
                print(f"Ray's process on this node has not joined yet: {error}", file=sys.stderr, flush=True)
                time.sleep(LOOK_SECONDS)
            else:
                return True
        return time.monotonic() > deadline

    @functools.wraps(original)
    def start_raylet(node: Any, *values: Any, **named: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        original(node, *values, **named)
        while not settled(node, node.all_processes["raylet"][-1].process, deadline):
            print(f"Ray's process on this node ended and is started again; see {node._logs_dir}", file=sys.stderr)
            del node.all_processes["raylet"]
            for left_over in (node._raylet_socket_name, node._plasma_store_socket_name):
                Path(left_over).unlink(missing_ok=True)
            node._node_id = module.ray.NodeID.from_random().hex()  # the ended one's port files have its id
            time.sleep(LOOK_SECONDS)
            original(node, *values, **named)

    module.Node.start_raylet = start_raylet


def install() -> None:
    """Change Ray in this process."""
    import_hooks.after_import({"ray._private.node": start_raylet_again})


def main() -> None:
    """The command line `ray`, without its server for clients outside the cluster, which nothing here uses."""
    os.environ |= VARIABLES
    install()
    from ray.scripts import scripts

    scripts.get_ray_client_dependency_error = lambda: "not wanted"
    scripts.main()


if __name__ == "__main__":
    main()

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
LOOK_SECONDS = 0.2
VARIABLES = {
    # How often a node asks for the head, every two seconds (ray/_private/utils.py)
    "RAY_NUM_REDIS_GET_RETRIES": f"{WAIT_SECONDS / 2:.0f}",
    # How long Ray's other processes try to connect to its Global Control Store
    "RAY_py_gcs_connect_timeout_s": f"{WAIT_SECONDS:.0f}",
    # How long a raylet, Ray's own process of each node, waits for an agent's answer and for the workers that it starts
    "RAY_agent_register_timeout_ms": f"{1000 * WAIT_SECONDS:.0f}",
    "RAY_worker_register_timeout_seconds": f"{WAIT_SECONDS:.0f}",
}
# Of a raylet's agents. Where the agents choose them, a raylet ends itself when it does not know one in 15 seconds, a
# figure in Ray's code (ray/util/port_persistence.h).
PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


def wait_in_start_raylet(module: ModuleType) -> None:
    """Have `Node.start_raylet` choose the agents' ports, and return when raylet and agents run.

    Until ten minutes have passed a raylet that has ended is started again: a raylet ends with its agents, and another
    process may have taken a port first.

    Args:
        module: ray._private.node.
    """
    original = module.Node.start_raylet
    services, exceptions, internal = module.ray._private.services, module.ray.exceptions, module.ray._raylet

    def start(node: Any, *values: Any, **named: Any) -> None:
        from frameworks import slurm_nodes

        for name, port in zip(PORTS, slurm_nodes.free_ports(len(PORTS)), strict=True):
            setattr(node._ray_params, name, port)
        # Ray tells this one to the agent, but not to the raylet, which reads it from the file that the agent writes.
        name, port = "dashboard_agent_listen_port", node._ray_params.dashboard_agent_listen_port
        internal.persist_port(node._session_dir, node._node_id, name, port)
        original(node, *values, **named)

    def joined(node: Any) -> bool:
        """Whether the raylet is in the cluster; the answer takes up to 30 seconds."""
        try:
            services.get_node(node.gcs_address, node._node_id)
        except (RuntimeError, exceptions.RaySystemError) as error:
            print(f"Ray's process on this node has not joined yet: {error}", file=sys.stderr, flush=True)
            return False
        return True

    def settled(node: Any, process: Any, deadline: float) -> bool:
        """Whether raylet and agents run; true after the deadline, too, when Ray itself reports what failed."""
        files = [Path(node._session_dir) / internal.get_port_filename(node._node_id, name) for name in PORTS]
        while process.poll() is None and time.monotonic() < deadline:
            if all(map(Path.exists, files)) and joined(node):
                return True
            time.sleep(LOOK_SECONDS)
        return time.monotonic() > deadline

    @functools.wraps(original)
    def start_raylet(node: Any, *values: Any, **named: Any) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        start(node, *values, **named)
        while not settled(node, node.all_processes["raylet"][-1].process, deadline):
            print(f"Ray's process on this node ended and is started again; see {node._logs_dir}", file=sys.stderr)
            del node.all_processes["raylet"]
            for left_over in (node._raylet_socket_name, node._plasma_store_socket_name):
                Path(left_over).unlink(missing_ok=True)
            node._node_id = module.ray.NodeID.from_random().hex()  # the ended one's port files have its id
            start(node, *values, **named)

    module.Node.start_raylet = start_raylet


def install() -> None:
    """Change Ray in this process."""
    import_hooks.after_import({"ray._private.node": wait_in_start_raylet})


def main() -> None:
    """The command line `ray`, without its server for clients outside the cluster, which nothing here uses."""
    os.environ |= VARIABLES
    install()
    from ray.scripts import scripts

    scripts.get_ray_client_dependency_error = lambda: "not wanted"
    scripts.main()


if __name__ == "__main__":
    main()

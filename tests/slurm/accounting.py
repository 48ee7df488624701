"""Slurm's accounting for a test's cluster: mariadbd and slurmdbd, in the cluster's folder, on free ports."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.slurm.daemons import Cluster

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr")
INSTALL = "apt-get install -y --no-install-recommends slurmdbd mariadb-server"


def missing(path: str) -> str:
    """The programs that are not installed and how to install them; empty if accounting can be started."""
    absent = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    return f"{', '.join(absent)} not installed: {INSTALL}" if absent else ""


def settings(folder: Path, port: int, enforce: str) -> str:
    """Lines of slurm.conf."""
    lines = [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={port}",
        f"AccountingStoragePass={folder}/munge.socket",  # with munge, the password is its socket
        "AccountingStorageTRES=gres/gpu",
        f"AccountingStorageEnforce={enforce}" if enforce else "",
    ]
    return "\n".join(lines)


def start(cluster: Cluster, port: int, database_port: int) -> None:
    """Start both and register the cluster; munged has to run, slurmctld must not run yet."""
    data, user = cluster.folder / "database", getpass.getuser()
    make = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={user}", "--skip-test-db"]
    make.append("--auth-root-authentication-method=normal")
    subprocess.run(make, env=cluster.environment, check=True, capture_output=True)
    options = [f"--datadir={data}", f"--socket={data}/socket", f"--port={database_port}", "--bind-address=127.0.0.1"]
    options += [f"--user={user}", f"--pid-file={data}/pid", "--skip-networking=OFF", "--innodb-buffer-pool-size=64M"]
    cluster.start("mariadbd", "mariadbd", "--no-defaults", *options)
    client = ["mariadb", "--no-defaults", f"--socket={data}/socket", "--user=root"]
    cluster.wait_for("the database", lambda: _works(cluster, *client, "--execute=select 1"))
    rights = "create user slurm@localhost identified by 'slurm'; grant all on *.* to slurm@localhost"
    cluster.run(*client, f"--execute={rights}")
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={cluster.folder}/munge.socket",
        "DbdHost=localhost",
        "DbdAddr=127.0.0.1",
        f"DbdPort={port}",
        f"SlurmUser={user}",
        f"LogFile={cluster.folder}/slurmdbd.log",
        f"PidFile={cluster.folder}/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        "StorageHost=127.0.0.1",
        f"StoragePort={database_port}",
        "StorageUser=slurm",
        "StoragePass=slurm",
        "StorageLoc=slurm",
    ]
    file = cluster.folder / "slurmdbd.conf"
    file.touch(mode=0o600)  # slurmdbd refuses any other
    file.write_text("\n".join([*lines, ""]))
    cluster.environment["SLURM_CONF"] = str(cluster.folder / "slurm.conf")  # slurmdbd.conf lies beside it
    cluster.start("slurmdbd", "slurmdbd", "-D")
    del cluster.environment["SLURM_CONF"]

    cluster.wait_for("slurmdbd", lambda: _works(cluster, "sacctmgr", "--immediate", "list", "cluster"))
    cluster.run("sacctmgr", "--immediate", "add", "cluster", "crosszero")


def _works(cluster: Cluster, *command: str) -> bool:
    return subprocess.run(command, env=cluster.environment, capture_output=True, check=False).returncode == 0

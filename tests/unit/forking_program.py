"""A program whose processes are forks; tests/unit/test_fork_server.py runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from system import fork_server, forked_job


def main() -> None:
    forked_job.fork_processes(["wave"], {"READ_AT_IMPORT": "yes"})
    python = str(fork_server.write_interpreter(Path(sys.argv[1])))
    assert os.environ["READ_AT_IMPORT"] == "yes" and "wave" in sys.modules
    assert fork_server.forked_command([sys.executable, "-c", ""])[0] != sys.executable
    print(python, flush=True)
    if sys.argv[2] == "wait":
        subprocess.run([python, "-c", "import time; time.sleep(600)"], check=False)
        time.sleep(600)
    sys.exit(sys.argv[2])


if __name__ == "__main__":
    main()

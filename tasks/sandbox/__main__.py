"""Say whether programs of a model can run on this machine: python -m tasks.sandbox.

Exit status: 0 yes; NOT_WARM yes, but each in a sandbox that is started for it; 1 no.
"""

from __future__ import annotations

import sys

from system.errors import UserError, run_command
from tasks import sandbox


def main() -> None:
    """Command line, without arguments."""
    if why := sandbox.why_unavailable():
        raise UserError(f"programs of a model are refused here: {why}", code="no-sandbox")
    if why := sandbox.why_not_warm():
        print(f"a sandbox starts for each program; none can be kept warm: {why}")
        sys.exit(sandbox.NOT_WARM)
    print("sandboxes start, and are kept warm")


if __name__ == "__main__":
    run_command(main)

"""The former name of analysis.provenance_diff. It goes in the next release."""

from analysis.provenance_diff import main
from contracts import renamed
from contracts.errors import run_command

if __name__ == "__main__":
    renamed.warn("python -m analysis.why", "python -m analysis.provenance_diff")
    run_command(main)

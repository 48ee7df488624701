"""The former name of analysis.gate. It goes in the next release."""

import sys

from analysis.gate.__main__ import main
from contracts import renamed

if __name__ == "__main__":
    renamed.warn("python -m analysis.check", "python -m analysis.gate")
    sys.exit(main())

"""The former name of analysis.provenance_diff. It goes in the next release."""

from contracts import renamed

if __name__ == "__main__":
    renamed.run("analysis.why", "analysis.provenance_diff")

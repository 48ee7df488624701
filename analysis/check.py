"""The former name of analysis.gate. It goes in the next release."""

from contracts import renamed

if __name__ == "__main__":
    renamed.run("analysis.check", "analysis.gate")

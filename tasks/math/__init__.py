"""Mathematics: answers compared exactly, else by math-verify in a worker process that can be killed."""

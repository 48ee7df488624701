"""Launch scripts of any framework, translated into another one's or into a run file: `crosszero translate`."""

"""The program `crosszero`: commands for people, each of which starts what the graph or an environment has."""

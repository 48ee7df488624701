"""What lets a framework run without a GPU: out of tree, loaded only there, and bound to one release of it."""

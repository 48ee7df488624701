"""What lets the released frameworks train without a GPU: loaded only there, out of their trees, pinned to a release."""

"""The trainers' own functions, as installed, on the same tensors; and the registry of how they differ."""

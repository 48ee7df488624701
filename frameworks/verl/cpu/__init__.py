"""Lets verl run without a GPU: outside its code, loaded only on the CPU, and pinned to one release."""

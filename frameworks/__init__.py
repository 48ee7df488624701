"""Adapters: each turns a run into its framework's own command, checks it, launches it, and reads what it wrote."""

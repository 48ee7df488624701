"""What is counted and measured on completions and training logs."""

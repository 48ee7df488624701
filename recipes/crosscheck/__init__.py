"""One GRPO recipe through three frameworks, with the same values as far as each framework has them."""

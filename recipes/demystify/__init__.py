"""Demystifying long chain-of-thought: PPO with a classic, a cosine and a cosine and repetition reward."""

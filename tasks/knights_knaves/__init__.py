"""Knights and Knaves: who tells the truth and who lies."""

"""Tasks with verifiable answers: where their problems come from, and how an answer is judged."""

"""Syllogisms: SmolLM-135M after a supervised warm-up, as Biswas trained it; and with right labels."""

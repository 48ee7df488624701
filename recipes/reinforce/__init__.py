"""REINFORCE with PPO's clipping and without a critic: REINFORCE++ (arXiv:2501.03262), with a baseline, and RLOO."""

"""SimpleRL: PPO with a critic through OpenRLHF on MATH levels 3 to 5, with a reward for a right answer in a box."""

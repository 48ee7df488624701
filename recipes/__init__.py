"""Published recipes: their runs and rewards, the tasks they train on, and the frameworks they were written for."""

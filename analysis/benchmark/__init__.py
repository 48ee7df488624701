"""What the same run costs through each framework: time, memory and money to the same accuracy."""

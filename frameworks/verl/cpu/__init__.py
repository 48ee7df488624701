"""What lets verl run without a GPU: outside its code, loaded only there, and pinned to one release."""

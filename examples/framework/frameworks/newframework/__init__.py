"""newframework: what it trains, and through which of its commands."""

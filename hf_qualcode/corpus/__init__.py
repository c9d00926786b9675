"""From files to units of code."""

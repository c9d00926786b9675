"""The tasks of `hf-qualcode evaluate`, one module each, and what they share."""

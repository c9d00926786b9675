"""Parts of `hf-qualcode search`."""

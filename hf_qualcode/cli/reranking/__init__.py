"""Parts of `hf-qualcode rerank`."""

"""How the bundled reranker is made, from public data to its folder: sources, lists, model, mixture."""

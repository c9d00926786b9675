"""Makes `evaluate.load("qpa")` work by bare name, in every later process and without a network.

`evaluate` looks for a bare name beside the current folder, then on the Hub, then among the modules it has cached. The
metrics that come with this package are put into that cache.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from hf_qualcode.types import QualcodeError


METRICS = ("qpa", "mca")
_BUNDLED = Path(__file__).parent / "bundled" / "metrics"


def register_metrics() -> dict[str, Path]:
    """Puts this package's metrics into the cache of `evaluate`, so that `evaluate.load("qpa")` finds them anywhere.

    May be called again, and by several processes at once. Another version's module stays in the cache; the one of the
    version that registered last is loaded. With a network, a metric of that name in the Hub's `evaluate-metric`
    organisation would come first; `HF_EVALUATE_OFFLINE=1` (set before `evaluate` is imported) also saves the requests.

    Returns:
        `dict[str, Path]`: Metric name -> the file that will be loaded.

    Raises:
        `QualcodeError`: If the cache cannot be written, or this installation lacks its metrics.
    """
    from evaluate.loading import init_dynamic_modules

    try:
        # `evaluate` keeps every kind of module under "metrics".
        cache = Path(init_dynamic_modules()) / "metrics"
        return {name: _register(name, cache) for name in METRICS}
    except OSError as error:
        raise QualcodeError(
            f"the metrics cannot be put into the cache of `evaluate`: {error}; "
            "set HF_MODULES_CACHE to a folder that can be written"
        ) from error


def _register(name: str, cache: Path) -> Path:
    source = _BUNDLED / name / f"{name}.py"
    if not source.is_file():
        raise QualcodeError(f"{source} is missing: this installation is not complete; install hf-qualcode again")
    content = source.read_bytes()
    # The folder's name has 64 characters, by which `evaluate` knows it.
    target = cache / f"evaluate-metric--{name}" / hashlib.sha256(content).hexdigest() / source.name
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in (cache, target.parent.parent, target.parent):
        (folder / "__init__.py").touch()
    if not target.is_file() or target.read_bytes() != content:
        _replace(target, content)
    # Of several versions `evaluate` takes the newest file.
    _make_newest(target)
    return target


def _replace(target: Path, content: bytes) -> None:
    # Written aside then renamed: a process that loads it meanwhile sees the whole file or none.
    handle, aside = tempfile.mkstemp(dir=target.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(aside).chmod(0o644)
        Path(aside).replace(target)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise
    # Bytecode is matched by time and size, which a replaced file may share with its predecessor.
    shutil.rmtree(target.parent / "__pycache__", ignore_errors=True)


def _make_newest(target: Path) -> None:
    others = []
    for file in target.parent.parent.glob(f"*/{target.name}"):
        # What is no file (a link to nowhere, an entry that somebody clears away just now) is never loaded.
        with contextlib.suppress(OSError):
            if file != target:
                others.append(file.stat().st_mtime_ns)
    latest = max(others, default=None)
    if latest is not None and latest >= target.stat().st_mtime_ns:
        os.utime(target, ns=(latest + 1_000_000_000, latest + 1_000_000_000))

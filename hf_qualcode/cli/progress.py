"""Progress on stderr: what is being done, how fast, and how long it will take."""

import sys
import time
from collections.abc import Callable

from tqdm import tqdm


# Seconds before a stage is worth a line: most end sooner.
_PATIENCE_S = 0.7
_LOG_INTERVAL_S = 10.0


class ProgressLine:
    """A `progress(stage, done, total)` callback that draws one tqdm line a stage, and nothing for short ones.

    On a terminal the line moves; in a log there is a new one every ten seconds.

    Args:
        note (`Callable`, *optional*): Returns what else to show at the end of the line, such as tokens so far.
    """

    def __init__(self, note: Callable[[], str] | None = None):
        self._note = note
        self._stage: str | None = None
        self._bar: tqdm | None = None
        self._started = 0.0
        self._logged = 0.0

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        if stage != self._stage:
            self.close()
            self._stage, self._started, self._logged = stage, time.monotonic(), 0.0
        elapsed = time.monotonic() - self._started
        if not sys.stderr.isatty():
            if elapsed - self._logged >= _LOG_INTERVAL_S:
                self._logged = elapsed
                note = self._note() if self._note is not None else ""
                sys.stderr.write(tqdm.format_meter(done, total, elapsed, prefix=stage, ncols=0, postfix=note) + "\n")
            return
        if self._bar is None:
            if elapsed < _PATIENCE_S:
                return
            self._bar = tqdm(
                desc=stage,
                total=total,
                initial=0,
                file=sys.stderr,
                leave=False,
                mininterval=0.2,
                dynamic_ncols=True,
                unit_scale=total is None or total >= 10_000,
            )
            self._bar.start_t = time.time() - elapsed
        self._bar.total = total
        if self._note is not None:
            self._bar.set_postfix_str(self._note(), refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the present stage's line."""
        if self._bar is not None:
            self._bar.close()
        self._bar, self._stage = None, None

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *_) -> None:
        self.close()

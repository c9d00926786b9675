"""Progress on stderr: what is being done, how fast, and how long it will take."""

import sys
import time

from tqdm import tqdm


# Seconds before a stage is worth a line: most end sooner.
_PATIENCE_S = 0.7
_LOG_INTERVAL_S = 10.0


class ProgressLine:
    """A `progress(stage, done, total)` callback that draws one tqdm line a stage, and nothing for short ones.

    On a terminal the line moves; in a log there is a new one every ten seconds.
    """

    def __init__(self):
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
                sys.stderr.write(tqdm.format_meter(done, total, elapsed, prefix=stage, ncols=0) + "\n")
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

"""The figure of a diversity report: how distances spread over sets, with guidelines and without (as Fig. 3)."""

from collections.abc import Sequence
from pathlib import Path

from hf_qualcode.synthesis.diversity import MEASURES, Diversity
from hf_qualcode.synthesis.diversity_report import PAPER, PAPER_ENCODER
from hf_qualcode.types import QualcodeError


SUFFIXES = (".png", ".svg", ".pdf")
_TITLES = {"syntactic": "Syntactic distance (1 - CodeBLEU)", "semantic": "Semantic distance (cosine)"}
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red")
_INCHES, _DOTS_PER_INCH = (9.0, 3.6), 150


def plot_diversity(conditions: Sequence[Diversity], path: Path) -> None:
    """Draws one panel a distance: a violin of the sets of each condition, their mean with its interval, and the
    paper's mean as a dashed line.

    Args:
        conditions (`Sequence[Diversity]`): With distinct names.
        path (`Path`): File to write; its suffix (.png, .svg or .pdf) says how.

    Raises:
        `QualcodeError`: Without matplotlib, on another suffix, or when the file cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise QualcodeError(f"no figure can be written to {path}; name a file that ends in {', '.join(SUFFIXES)}")
    try:
        from matplotlib.figure import Figure  # not pyplot: no window, no state of its own
    except ImportError:
        raise QualcodeError('the figure needs matplotlib; run `pip install "hf-qualcode[plot]"`') from None
    figure = Figure(figsize=_INCHES, layout="constrained")
    for axes, measure in zip(figure.subplots(1, len(MEASURES)), MEASURES, strict=True):
        _draw_panel(axes, conditions, measure)
    try:
        figure.savefig(path, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise QualcodeError(f"no figure can be written to {path} ({error.strerror or error})") from error


def _draw_panel(axes, conditions: Sequence[Diversity], measure: str) -> None:
    places = range(1, len(conditions) + 1)
    for place, condition, colour in zip(places, conditions, _COLOURS * len(conditions), strict=False):
        values = [getattr(each, measure) for each in condition.sets]
        if len(set(values)) > 1:  # a density of equal values is none
            body = axes.violinplot(values, [place], widths=0.7, showextrema=False)["bodies"][0]
            body.set_facecolor(colour)
        found = condition.estimate(measure)
        axes.errorbar(
            place, found.mean, [[max(0.0, found.mean - found.low)], [max(0.0, found.high - found.mean)]], fmt="o",
            color=colour, capsize=4,
        )  # fmt: skip
        axes.annotate(f"{found.mean:.3f}", (place, found.mean), textcoords="offset points", xytext=(8, 4))
        paper = PAPER.get(condition.name, {}).get(measure)
        if paper is not None:
            label = "paper" if measure == "syntactic" or condition.encoder == PAPER_ENCODER else "paper (its encoder)"
            axes.hlines(paper, place - 0.35, place + 0.35, colors=colour, linestyles="dashed", label=label)
    axes.set_title(_TITLES[measure])
    axes.set_xticks(list(places), [condition.name for condition in conditions])
    axes.set_xlim(0.4, len(conditions) + 0.6)
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(handles=axes.get_legend_handles_labels()[0][:1], loc="best")

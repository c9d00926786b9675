"""`hf-qualcode evaluate`: measure a model, or what another system made, on a test set. One module a task beside it."""

from importlib import import_module


# In the order of the help text.
TASKS = ("preference", "reranking", "retrieval")


def add_parser(subparsers) -> None:
    """Add the command's arguments."""
    parser = subparsers.add_parser("evaluate", help="measure a model on a test set")
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)
    for name in TASKS:
        import_module(f"hf_qualcode.cli.evaluating.{name}").add_task(tasks)

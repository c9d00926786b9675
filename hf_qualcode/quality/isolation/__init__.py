"""How a stranger's program is shut in: the launcher of `quality/sandbox.py` and its parts.

The launcher runs in an interpreter of its own (`python -I -S launcher.py`), small and without the package, so these
modules import the standard library and each other (relatively) and nothing else.
"""

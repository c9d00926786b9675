"""What verification runs inside the sandbox, and what it hands in and reads back.

`enlarging`, `comparing`, `calls`, `runs` and `inside` go into the sandbox as text: they use the standard library and
each other, nothing else.
"""

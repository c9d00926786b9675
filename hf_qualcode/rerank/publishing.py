"""Putting a reranker on the Hugging Face Hub."""

import tempfile
from pathlib import Path

from hf_qualcode.hub import check_repository
from hf_qualcode.rerank.saving import CARD_FILE, OWN_FILES, RESULTS_FILE, base_folder, is_adapter, write_reranker
from hf_qualcode.types import QualcodeError, UsageError


def push_reranker(
    reranker,
    repo_id: str,
    *,
    card=None,
    merge: bool = False,
    base: str | None = None,
    private: bool | None = None,
    revision: str | None = None,
    commit_message: str,
) -> str:
    """Saves and uploads a reranker; see `Reranker.push_to_hub`. Files of an earlier one that this one lacks go.

    Raises:
        `UsageError`, `QualcodeError`: As there.
    """
    from huggingface_hub import HfApi

    check_repository(repo_id)
    folder = base_folder(base or reranker.base)
    if folder is not None and not merge and is_adapter(reranker.backbone.model):
        raise UsageError(
            f"the adapter's base model is a folder of this machine, {folder}, which nobody else has; say which model "
            'it is: push_to_hub(repo_id, base="org/name"), or push the whole model: merge=True'
        )
    with tempfile.TemporaryDirectory(prefix="hf-qualcode-") as place:
        folder = Path(place)
        write_reranker(reranker, folder, card=card, merge=merge, base=base)
        api = HfApi()
        try:
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            return api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                revision=revision,
                commit_message=commit_message,
                delete_patterns=[*(name for name in OWN_FILES if name != CARD_FILE), RESULTS_FILE],
            ).commit_url
        except Exception as error:  # of huggingface_hub, its HTTP client and the disk
            detail = " ".join(str(error).split())[:200]
            raise QualcodeError(
                f"the reranker was not pushed to {repo_id} ({type(error).__name__}: {detail}); save it with "
                f"save_pretrained(FOLDER), then push that: hf upload {repo_id} FOLDER"
            ) from error

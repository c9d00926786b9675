"""Putting a finished data set on the Hugging Face Hub."""

from pathlib import Path

from hf_qualcode.types import QualcodeError


def publish(folder: Path, repo_id: str) -> str:
    """Uploads a data set; files of an earlier one that are not part of it are deleted there.

    Args:
        folder (`Path`): The finished data set.
        repo_id (`str`): `org/name`; made where it does not exist.

    Returns:
        `str`: Address of the commit.

    Raises:
        `QualcodeError`: When the Hub refuses or cannot be reached; the folder is as it was.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        api.create_repo(repo_id, repo_type="dataset", exist_ok=True)
        return api.upload_folder(
            repo_id=repo_id,
            repo_type="dataset",
            folder_path=folder,
            commit_message="Data set built by hf-qualcode",
            delete_patterns=["*.parquet", "*.json"],
        ).commit_url
    except Exception as error:  # of huggingface_hub, its HTTP client and the disk
        detail = " ".join(str(error).split())[:200]
        raise QualcodeError(
            f"{folder} is built, but was not pushed to {repo_id} ({type(error).__name__}: {detail}); "
            f"push it with: hf upload {repo_id} {folder} --repo-type dataset"
        ) from error

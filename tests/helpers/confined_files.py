"""Files in the folder of a document and outside of it, and the names by which a document may refer to them."""

import shutil
from pathlib import Path
from typing import Any

from plain_documents import doc

DOCUMENT: dict[str, Any] = doc(
    "name=from-a-file adjacency=add-remove delta=1e-6 iterations=3 sampler=none matrix=dense file=matrix.csv multiplier=4"
)


def two_folders(tmp_path: Path) -> Path:
    """Return a folder with a matrix, next to a folder with another matrix."""
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "matrix.csv").write_text("1,0,0\n.5,1,0\n.25,.5,1\n", encoding="utf-8")
    (tmp_path / "mine" / "below").mkdir()
    shutil.copy(tmp_path / "mine" / "matrix.csv", tmp_path / "mine" / "below" / "matrix.csv")
    (tmp_path / "mine" / "near.csv").symlink_to("below/matrix.csv")
    (tmp_path / "mine" / "far.csv").symlink_to(tmp_path / "theirs" / "matrix.csv")
    (tmp_path / "mine" / "away").symlink_to(tmp_path / "theirs")
    return tmp_path / "mine"


INSIDE = ["matrix.csv", "below/matrix.csv", "./matrix.csv", "below/../matrix.csv", "near.csv"]
OUTSIDE = [
    "../theirs/matrix.csv",
    "far.csv",
    "away/matrix.csv",
    "below/../../theirs/matrix.csv",
    "/etc/passwd",
    "/dev/zero",
]


def named(file: str) -> dict[str, Any]:
    return {**DOCUMENT, "matrix": {"kind": "dense", "file": file}}

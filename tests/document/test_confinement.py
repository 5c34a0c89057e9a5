"""Documents of others: the files that they name lie in one folder, or are not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confined_files import INSIDE, OUTSIDE, named, two_folders

import pyaccount


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a matrix, and one beside it with another."""
    return two_folders(tmp_path)


@pytest.mark.parametrize("file", INSIDE)
def test_files_in_the_folder_are_read(file: str, folder: Path) -> None:
    for name in (file, str(folder / file)):
        assert pyaccount.compile(pyaccount.load(named(name), folder=folder)).reductions


@pytest.mark.parametrize("file", OUTSIDE)
def test_no_file_elsewhere_is_read(file: str, folder: Path) -> None:
    """By absolute paths, upwards, and by links: of files, of folders."""
    path = folder / "document.yaml"
    path.write_text(json.dumps(named(file), indent=1), encoding="utf-8")
    for source in (named(file), path):
        with pytest.raises(pyaccount.DocumentError) as caught:
            pyaccount.load(source, folder=folder)
        (problem,) = caught.value.problems
        assert (problem.slug, problem.path_text, problem.value) == ("outside-folder", "matrix.file", file)
        assert "own folder or below" in problem.message

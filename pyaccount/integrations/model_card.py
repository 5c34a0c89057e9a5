"""Model cards of the Hugging Face Hub: the key `privacy` of their front matter, written from a certificate or checked against it.

    privacy:
      pyaccount: 1
      statement: The training run “…” is (8, 1e-5)-differentially private …
      epsilon_upper: 7.99…

The key states what a reader needs to understand the numbers, and the digest of the certificate that proves them. Bounds are the
doubles of the certificate, spelled so that readers of YAML 1.1 and 1.2 read the same number.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.errors import CardError, CardMismatchError, Problem, printable
from pyaccount.integrations.facts import bounds, circumstances, mechanisms, samplers, stated
from pyaccount.integrations.front_matter import Located, located, rewrite, with_key

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.integrations.facts import StatedCertificate

#: The key of the front matter.
KEY = "privacy"
#: The key in it that says that pyaccount wrote it, and the version of its format.
FORMAT, VERSION = "pyaccount", 1
#: Names of files are for people: only digests identify a certificate.
_NOT_COMPARED = frozenset({"certificate"})


def _privacy_of(certificate: StatedCertificate) -> dict[str, Any]:
    """Return what the front matter states about a certificate, key by key.

    `epsilon_upper` (nats) and `delta_upper` are the upper bounds of the guarantee, which hold together.
    `failure_probability_upper` bounds the probability that they do not hold; it is 0 for a proof.
    """
    data = certificate.data
    numbers, words = bounds(data), circumstances(data)
    return {
        FORMAT: VERSION,
        "statement": printable(data.statement),
        "guarantee": words["guarantee"],
        **{name: numbers[name] for name in ("epsilon_upper", "delta_upper", "failure_probability_upper")},
        **{name: words[name] for name in ("unit", "group_size", "adjacency")},
        "mechanisms": mechanisms(data),
        "samplers": samplers(data),
        "certificate": certificate.file,
        "certificate_sha256": certificate.sha256,
        "document_sha256": data.document_sha256,
    }


def write_card(certificate: str | os.PathLike[str] | Certificate, card: str | os.PathLike[str]) -> bool:
    """Write the key `privacy` into the front matter of a model card. Nothing else in the card is touched.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory. Its digest is that of the file.
        card: The Markdown file of the card. If it has no front matter, it gets one.

    Returns whether the file was changed. A value that pyaccount wrote before is replaced, with comments in it. Raises
    `CertificateError` if this is not a certificate, its claim does not hold, or it contradicts itself, `CardError` if the card
    cannot be read or edited, and `OSError`.
    """
    file = Path(card)
    before, after = with_key(file, KEY, _privacy_of(stated(certificate)), replaced_if=FORMAT)
    if before != after:
        rewrite(file, after)
    return before != after


def read_card(card: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the key `privacy` of a model card. Raises `CardError` if the card has no such key of this format."""
    return dict(_of_card(Path(card)).value)


def check_card(certificate: str | os.PathLike[str] | Certificate, card: str | os.PathLike[str]) -> None:
    """Compare a model card with its certificate. Every value must be equal; only the name of the certificate's file may differ.

    Raises `CardMismatchError` with the line of every difference, `CardError` if the card has no key `privacy` of this format, and
    `CertificateError` as `write_card` does.
    """
    file = Path(card)
    expected, found = _privacy_of(stated(certificate)), _of_card(file)

    def problem(name: str, message: str, place: tuple[int, int], value: object, allowed: object = None) -> Problem:
        # A list or a mapping of a hostile card may be large once its aliases are expanded.
        plain = value if isinstance(value, str | int | float) else None
        shown = None if allowed is None else str(allowed)
        return Problem(CardMismatchError.slug, message, (KEY, name), str(file), *place, plain, shown)

    problems = []
    for name in expected.keys() - _NOT_COMPARED - found.value.keys():
        message = f"{name} is missing, so the card says less than its certificate: write it with `pyaccount card`"
        problems.append(problem(name, message, found.place, None))
    for name, value in found.value.items():
        place = found.places.get(str(name), found.place)
        if name not in expected:
            message = "the certificate has nothing of this name, so nobody checks it: move it out of privacy"
            problems.append(problem(str(name), message, place, value))
        elif name not in _NOT_COMPARED and (isinstance(value, bool) or value != expected[name]):
            # True is not 1.
            message = "the certificate states another value: write the card again with `pyaccount card`"
            problems.append(problem(str(name), message, place, value, expected[name]))
    if problems:
        raise CardMismatchError(sorted(problems, key=lambda one: (one.line or 0, one.path)))


def _of_card(file: Path) -> Located:
    """Return the key of a card with its places. Raises `CardError`."""
    found = located(file, KEY)
    if found is None:
        message = f"the card states no {KEY} in its front matter: write it with `pyaccount card CERT {file.name}`"
        raise CardError([Problem(CardError.slug, message, (KEY,), str(file))])
    version = found.value.get(FORMAT) if isinstance(found.value, dict) else None
    if type(version) is not int or version != VERSION:
        message = f"{KEY} is not of format version {VERSION}, which is read here: its key {FORMAT} says so. Write the card again"
        raise CardError(
            [Problem(CardError.slug, message, (KEY, FORMAT), str(file), *found.place, version, f"{FORMAT}: {VERSION}")]
        )
    return found

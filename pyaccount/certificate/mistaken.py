"""What people give where a certificate is expected, and what to do about it."""

from __future__ import annotations

import re


def taken_for_certificate(text: str, file: str) -> str | None:
    """What a text that is no JSON is, if it can be told: a document, before it was certified, or a report."""
    if re.search(r"^kind: *[\"']?policy\b", text, flags=re.MULTILINE):
        return f"a policy, not a certificate: `pyaccount check CERT --policy {file}`"
    if re.search(r"^pyaccount: ", text, flags=re.MULTILINE):
        return f"a document, not a certificate (not JSON); certify it first: pyaccount certify {file} -o CERT"
    if re.match(r"\s*<!doctype html", text, flags=re.IGNORECASE):
        return "a report, not a certificate: the JSON file is needed that `pyaccount certify -o` wrote"
    return None

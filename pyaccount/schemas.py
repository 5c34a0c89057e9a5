"""The JSON Schemas of everything that pyaccount reads and writes, generated from the models.

`python -m pyaccount.schemas` writes them to the folder `schemas/`; a test compares the files with the generated
schemas.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

#: The JSON Schema dialect of every schema.
DRAFT = "https://json-schema.org/draft/2020-12/schema"


#: The schemas of documents that people write, which `document.schema` generates.
_DOCUMENTS = ("mechanism", "amplification", "sweep", "policy", "data-set")
#: The schemas of commands' output, format version 1: the pydantic model or the dataclass of each, and its description.
_OUTPUTS = {
    "certificate": ("certificate:CertificateModel", "certificate"),
    "amplification-certificate": ("certificate.amplification:AmplificationCertificate", "amplification certificate"),
    "contradictory-certificate": ("certificate.saving:ContradictoryCertificate", "contradictory certificate"),
    "comparison": ("certificate.comparison:Comparison", "comparison"),
    "sweep-table": ("sweeping:Sweep", "table of a sweep"),
    "runs": ("store.running:RunList", "list of runs"),
    "ledger-entry": ("ledger.history:EntryRecord", "entry of a ledger"),
    "ledger-status": ("ledger.status:LedgerStatus", "status of a ledger"),
    "ledger-history": ("ledger.history:LedgerHistory", "history of a ledger"),
    "ledger-verification": ("ledger.verification:LedgerVerification", "verification of a ledger"),
    "verdict": ("gate.verdict:Verdict", "verdict"),
    "verification": ("gate.verification:Verification", "verification"),
    "independent-verdict": ("gate.independent:IndependentVerdict", "verdict of the independent checker"),
    "preparation": ("data.report:Preparation", "preparation"),
    "audit": ("auditing.report:Audit", "audit"),
    "probe": ("training.probing:Probe", "probe"),
    "plan": ("certificate.plan_record:PlanRecord", "plan"),
    "matrix": ("certificate.matrix_description:MatrixDescription", "matrix"),
    "amplification-plan": ("certificate.plan_record:AmplificationPlanRecord", "plan of an amplification"),
    "validation": ("messages:Validation", "validation"),
    "errors": ("messages:Errors", "errors"),
    "accountant-state": ("accountant.state:AccountantState", "accountant state"),
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of documents or of an output, by one of the names in `SCHEMAS`."""
    if name in _OUTPUTS:
        home, title = _OUTPUTS[name]
        module, _, attribute = home.partition(":")
        found = {
            **_output(getattr(import_module(f"pyaccount.{module}"), attribute)),
            "title": f"pyaccount {title}, version 1",
        }
    else:
        from pyaccount.document.schema import document_schema

        found = document_schema(name)
    # The identity is a name and not an address: nothing is fetched.
    return {"$schema": DRAFT, "$id": f"urn:pyaccount:schema:{name}:v1", **found}


def _output(shape: Any) -> dict[str, Any]:
    """Return the schema of a model, or of a dataclass, every field of which is always written."""
    if hasattr(shape, "model_json_schema"):
        found: dict[str, Any] = shape.model_json_schema(mode="serialization")
        return found
    from pydantic import TypeAdapter

    found = TypeAdapter(shape).json_schema(mode="serialization")
    for part in (found, *found.get("$defs", {}).values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    return found


#: A function that generates each schema.
SCHEMAS = {name: partial(schema, name) for name in (*_DOCUMENTS, *_OUTPUTS)}


def write(folder: Path) -> None:
    """Write every schema to `folder`."""
    for name, generate in SCHEMAS.items():
        text = json.dumps(generate(), indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.v1.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "schemas"))

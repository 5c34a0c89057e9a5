"""The JSON Schemas of everything pyaccount reads and writes, generated from the models.

`python -m pyaccount.schemas` writes them to the folder `schemas/`; a test compares the files with what is generated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

#: What every schema is written in.
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def mechanism_schema() -> dict[str, Any]:
    """The schema of mechanism documents, version 1."""
    from pyaccount.document.schema import mechanism_schema as generate

    return _headed("mechanism", generate())


def certificate_schema() -> dict[str, Any]:
    """The schema of certificates, format version 1."""
    from pyaccount.certificate import CertificateModel

    return _written(CertificateModel, "certificate", "certificate")


def amplification_schema() -> dict[str, Any]:
    """The schema of documents of kind amplification, version 1."""
    from pyaccount.document.schema import amplification_schema as generate

    return _headed("amplification", generate())


def amplification_certificate_schema() -> dict[str, Any]:
    """The schema of what certifying an amplification gives, format version 1."""
    from pyaccount.certificate.amplification import AmplificationCertificate

    return _written(AmplificationCertificate, "amplification-certificate", "amplification certificate")


def contradictory_certificate_schema() -> dict[str, Any]:
    """The schema of a report in JSON of a certificate that contradicts itself, format version 1."""
    from pyaccount.certificate.saving import ContradictoryCertificate

    return _written(ContradictoryCertificate, "contradictory-certificate", "contradictory certificate")


def policy_schema() -> dict[str, Any]:
    """The schema of policies, version 1."""
    from pyaccount.document.schema import policy_schema as generate

    return _headed("policy", generate())


def sweep_schema() -> dict[str, Any]:
    """The schema of sweeps, version 1."""
    from pyaccount.document.schema import sweep_schema as generate

    return _headed("sweep", generate())


def sweep_table_schema() -> dict[str, Any]:
    """The schema of the table of a sweep, format version 1."""
    from pyaccount.sweeping import Sweep

    return _written(Sweep, "sweep-table", "table of a sweep")


def runs_schema() -> dict[str, Any]:
    """The schema of what `pyaccount runs` says, format version 1."""
    from pyaccount.store.listing import RunList

    return _written(RunList, "runs", "list of runs")


def comparison_schema() -> dict[str, Any]:
    """The schema of comparisons, format version 1."""
    from pyaccount.certificate.comparison import Comparison

    return _written(Comparison, "comparison", "comparison")


def verdict_schema() -> dict[str, Any]:
    """The schema of what `pyaccount check` says, format version 1."""
    from pyaccount.gate.verdict import Verdict

    return _data(Verdict, "verdict", "verdict")


def verification_schema() -> dict[str, Any]:
    """The schema of what `pyaccount verify` says, format version 1."""
    from pyaccount.gate.verification import Verification

    return _data(Verification, "verification", "verification")


def preparation_schema() -> dict[str, Any]:
    """The schema of what `pyaccount prepare` says, format version 1."""
    from pyaccount.data.report import Preparation

    return _data(Preparation, "preparation", "preparation")


def plan_schema() -> dict[str, Any]:
    """The schema of what `pyaccount plan` says, format version 1."""
    from pyaccount.certificate.plan_record import PlanRecord

    return _written(PlanRecord, "plan", "plan")


def matrix_schema() -> dict[str, Any]:
    """The schema of what `pyaccount matrix` writes, format version 1."""
    from pyaccount.certificate.matrix_description import MatrixDescription

    return _written(MatrixDescription, "matrix", "matrix")


def amplification_plan_schema() -> dict[str, Any]:
    """The schema of what `pyaccount plan` says of an amplification, format version 1."""
    from pyaccount.certificate.plan_record import AmplificationPlanRecord

    return _written(AmplificationPlanRecord, "amplification-plan", "plan of an amplification")


def validation_schema() -> dict[str, Any]:
    """The schema of what `pyaccount validate` says, format version 1."""
    from pyaccount.messages import Validation

    return _written(Validation, "validation", "validation")


def errors_schema() -> dict[str, Any]:
    """The schema of what a command says that came to no result, format version 1."""
    from pyaccount.messages import Errors

    return _written(Errors, "errors", "errors")


def audit_schema() -> dict[str, Any]:
    """The schema of what `pyaccount audit` says, format version 1."""
    from pyaccount.auditing.report import Audit

    return _data(Audit, "audit", "audit")


def state_schema() -> dict[str, Any]:
    """The schema of what an accountant saves, format version 1."""
    from pyaccount.accountant.state import AccountantState

    return _written(AccountantState, "accountant-state", "accountant state")


def _data(shape: type[object], name: str, title: str) -> dict[str, Any]:
    """The schema of a dataclass; every field is always written."""
    from pydantic import TypeAdapter

    schema = TypeAdapter(shape).json_schema(mode="serialization")
    for part in (schema, *schema.get("$defs", {}).values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    return _headed(name, {**schema, "title": f"pyaccount {title}, version 1"})


def _written(model: type[BaseModel], name: str, title: str) -> dict[str, Any]:
    schema = model.model_json_schema(mode="serialization")
    return _headed(name, {**schema, "title": f"pyaccount {title}, version 1"})


def _headed(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its draft and its identity, which is a name and no address: nothing is fetched."""
    return {"$schema": DRAFT, "$id": f"urn:pyaccount:schema:{name}:v1", **schema}


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "mechanism": mechanism_schema,
    "certificate": certificate_schema,
    "amplification": amplification_schema,
    "amplification-certificate": amplification_certificate_schema,
    "contradictory-certificate": contradictory_certificate_schema,
    "comparison": comparison_schema,
    "sweep": sweep_schema,
    "sweep-table": sweep_table_schema,
    "runs": runs_schema,
    "policy": policy_schema,
    "verdict": verdict_schema,
    "verification": verification_schema,
    "preparation": preparation_schema,
    "audit": audit_schema,
    "plan": plan_schema,
    "matrix": matrix_schema,
    "amplification-plan": amplification_plan_schema,
    "validation": validation_schema,
    "errors": errors_schema,
    "accountant-state": state_schema,
}


def write(folder: Path) -> None:
    """Write every schema to `folder`."""
    for name, generate in SCHEMAS.items():
        text = json.dumps(generate(), indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.v1.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "schemas"))

"""Drafts for the Differential Privacy Deployments Registry: what a certificate knows, in the names of the registry.

The registry of OpenDP has a file in YAML for each deployment. Most of its fields are about the deployment: who publishes what for
whom. No certificate knows them; the draft lists each as a comment for a person to fill in. The names and the allowed words are
those of `schemas/deployments-schema.yaml` in the repository opendp/deployments-registry-data, as of July 2026.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import yaml

from pyaccount.certificate.statement import hidden_change
from pyaccount.errors import printable
from pyaccount.integrations.facts import mechanisms, noise_multipliers, samplers, stated
from pyaccount.rounding import down, up

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.integrations.facts import StatedCertificate
    from pyaccount.records.certificate import CertificateModel

#: The fields that a person must fill in, by section, with what belongs there. The registry requires those of `basic` (except for
#: the sector), and the authors.
TO_FILL_IN: dict[str, dict[str, str]] = {
    "basic": {
        "name": "the name of the data product",
        "data_curators": "a list: who publishes it",
        "description": "what it is, briefly",
        "intended_use": "what it is used for",
        "data_product_type": "Machine learning model, Summary statistics, Synthetic data or another word of the registry",
        "data_product_region": "which region the data are about, or whose law applies",
        "publication_date": "YYYY-MM-DD",
        "data_product_sector": "Technology, Healthcare, Education, Government, Energy or Finance",
    },
    "dp_variant": {
        "data_domain": "the data sets that are eligible for protection",
        "unprotected_quantities": "what is released without protection",
    },
    "deployment_model": {
        "model_name": "Central, Local, Shuffle or Federated",
        "actors": "who sees what, and who is trusted with what",
        "release_type": "One release or Many releases",
        "data_source_type": "Static or Dynamic",
        "access_type": "Interactive or Non-interactive",
    },
    "accounting": {"post_processing": "what is done with the data product after its protection"},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": "what was done before, and whether its privacy loss is counted",
        "justification": "why these choices were made",
    },
    "administrative": {"sources": "links", "registry_authors": "a list: who fills in this file"},
}
#: The sections, in the order of the registry.
SECTIONS = (
    *("basic", "dp_variant", "privacy_loss", "deployment_model", "accounting", "implementation"),
    "administrative",
)


def registry(certificate: str | os.PathLike[str] | Certificate) -> str:
    """Return a draft for the registry, as YAML text, with a comment for each field that a person must fill in.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory.

    The privacy parameters are the upper bounds of the guarantee, with all digits; `privacy_parameters_details` says so. Raises
    `CertificateError` if this is not a certificate, its claim does not hold, or it contradicts itself.
    """
    known = _known_fields(stated(certificate))
    lines = [
        "# A draft for the Differential Privacy Deployments Registry. What stands here is from the certificate.",
        "# A person fills in each line that is a comment, and decides about the tier.",
        *_lines({name: known[name] for name in ("url_slug", "status", "tier")}, 0),
        "deployment:",
    ]
    for section in SECTIONS:
        lines += [f"  {section}:", *_lines(known["deployment"].get(section, {}), 4)]
        lines += [f"    # {name}: fill in: {what}" for name, what in TO_FILL_IN.get(section, {}).items()]
    return "\n".join(lines) + "\n"


def _known_fields(certificate: StatedCertificate) -> dict[str, Any]:
    """Return the fields of the registry that the certificate knows, as nested mappings."""
    data = certificate.data
    guarantee = data.guarantee
    pure = guarantee.delta == 0.0
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", data.name.lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 2,
        "deployment": {
            "dp_variant": {"variant_name": "Pure DP" if pure else "Approximate DP"},
            "privacy_loss": {
                "privacy_unit": data.privacy.unit
                if data.privacy.group_size == 1
                else f"group of {data.privacy.group_size} {data.privacy.unit}s",
                "privacy_unit_details": f"Data sets are neighbours if they differ by {hidden_change(data.privacy)} "
                f"({data.privacy.adjacency}).",
                "privacy_parameters": {"epsilon": guarantee.epsilon} | ({} if pure else {"delta": guarantee.delta}),
                "privacy_parameters_details": _details(data),
            },
            "accounting": {
                "composition": printable(
                    " ".join(
                        f"{one.subject}: {one.theorem} ({one.source}); rounds: {one.rounds}." for one in data.reductions
                    )
                )
            },
            "implementation": {"mechanisms": " ".join(_phases(data))},
            "administrative": {
                "notes": printable(
                    f"{data.statement} Certificate: {certificate.file}, SHA-256 {certificate.sha256}. "
                    f"Its assumptions: {' '.join(data.assumptions)}"
                ),
            },
        },
    }


def _details(data: CertificateModel) -> str:
    guarantee = data.guarantee
    failing = (
        f" They do not hold with probability at most {up(guarantee.failure_probability)}, over the samples of the accountant."
        if guarantee.failure_probability
        else ""
    )
    return (
        f"ε and δ are upper bounds that hold together ({guarantee.kind}). At this δ, no ε below {down(guarantee.epsilon_lower)} "
        f"holds.{failing}"
    )


def _phases(data: CertificateModel) -> Iterator[str]:
    columns = zip(data.phases, mechanisms(data), samplers(data), noise_multipliers(data), strict=True)
    for phase, mechanism, sampler, multiplier in columns:
        rounds = f"{phase.iterations} iterations" + ("" if phase.count == 1 else f", {phase.count} times")
        yield f"{mechanism}; sampler {sampler}; noise multiplier {multiplier}; {rounds}."
    matrices = {phase.matrix.kind for phase in data.phases} - {"identity"}
    if matrices:
        yield f"Noise is correlated by a matrix ({', '.join(sorted(matrices))})."
    yield f"Certified with pyaccount {data.versions.get('pyaccount', 'of an unknown version')}."


def _lines(values: dict[str, Any], indent: int) -> list[str]:
    """Return a mapping as lines of YAML."""
    if not values:
        return []
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=10**6)
    return [" " * indent + line for line in text.splitlines()]

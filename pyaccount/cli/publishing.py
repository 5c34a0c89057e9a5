"""Commands that state a certificate where a model is published: in its model card, and in bills of materials and registries."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pyaccount.cli.common import HOLDS, check_apart, check_output, printing, tell
from pyaccount.cli.completion import FILE, certificate_argument
from pyaccount.cli.options import format_option, options, stdout_or_file_option


@click.command(short_help="State a certificate in a model card, or compare the two.")
@certificate_argument
@click.argument("card", metavar="CARD", type=FILE)
@click.option("--check", "compared", is_flag=True, help="Change nothing: compare what CARD states with CERT.")
@format_option("the result")
def card(certificate: str, card: str, compared: bool, form: str) -> int:
    """Write what CERT certifies into the front matter of CARD, the README.md of a model on the Hugging Face Hub, under the key
    `privacy`. Nothing else in CARD changes.

    \b
    Examples:
      pyaccount card training.cert.json README.md
      pyaccount card training.cert.json README.md --check

    A certificate whose claim does not hold is not stated.

    \b
    Exit codes: 0 it is written or it agrees, 1 the card states something else than CERT,
    2 the certificate or the card cannot be read.
    """
    from pyaccount.errors import printable
    from pyaccount.integrations.model_card import check_card, read_card, write_card

    check_apart("CARD", Path(card), [certificate])
    if certificate.lower().endswith(".md") and card.lower().endswith(".json"):
        raise click.UsageError(
            f"CERT comes before CARD; are the arguments swapped? pyaccount card {card} {certificate}"
        )
    if compared:
        check_card(certificate, card)
        result, words = "agrees", f"agrees with {certificate}"
    else:
        changed = write_card(certificate, card)
        result, words = (
            ("written", f"states {certificate}") if changed else ("unchanged", f"already states {certificate}")
        )
    with printing():
        if form == "json":
            stated = {"pyaccount": 1, "kind": "model-card", "file": card, "result": result, "privacy": read_card(card)}
            text = json.dumps(stated, indent=2, ensure_ascii=False, allow_nan=False)
            # Half of a surrogate pair, as in names of files that are no text, is written as JSON spells it.
            click.echo(text.encode(errors="backslashreplace").decode())
        else:
            tell(printable(f"{card}: {words}"))
    return HOLDS


@click.command(short_help="Write a bill of materials, or a registry's draft, from a certificate.")
@certificate_argument
@options("""
    --to cyclonedx|spdx|registry! as target | cyclonedx: a bill of materials in CycloneDX 1.6. spdx: one in SPDX 3.0.1. registry:
        a draft for the Differential Privacy Deployments Registry.
    --subject FILE* as subjects | Bills: a file of the model, whose digest is written; repeat for several files.
    --model-name NAME as name | Bills: the name of the model [the name of the document].
    --model-version VERSION as version | Bills: the version of the model.
    --supplier NAME | Bills: the organisation that supplies the model.
    --download-location URL | Bills: where the model can be downloaded.
    --license EXPRESSION | Bills: the licence of the model, e.g. Apache-2.0.
    --release-time TIME | Bills: the day or time of the release, e.g. 2027-01-31.
""")
@stdout_or_file_option("result")
def export(
    certificate: str, target: str, subjects: tuple[str, ...], output: str | None, **described: str | None
) -> int:
    """Write what CERT certifies in the format of another tool: a bill of materials of the model, or a draft for the registry of
    deployments.

    \b
    Examples:
      pyaccount export training.cert.json --to cyclonedx --subject model.safetensors -o model.cdx.json
      pyaccount export training.cert.json --to spdx --model-version 1.0 --license Apache-2.0 -o model.spdx.json
      pyaccount export training.cert.json --to registry -o deployment.yaml

    What no certificate knows is left out unless it is given; stderr says what is missing. The time in a bill is that of
    SOURCE_DATE_EPOCH, or now. A certificate whose claim does not hold is not exported.
    """
    from pyaccount.cli.outputs import save
    from pyaccount.integrations.facts import DescribedModel

    check_output(output, [certificate, *subjects], writes_yaml=target == "registry")
    note: str | None = None
    model = DescribedModel(**described)
    if target == "registry":
        from pyaccount.integrations.registry import TO_FILL_IN, registry

        if subjects or model != DescribedModel():
            raise click.UsageError(
                "--to registry: a draft has no place for --subject and what describes a model: leave it out"
            )
        text = registry(certificate)
        count = sum(map(len, TO_FILL_IN.values()))
        note = f"{count} fields are for a person to fill in: each is a comment of the draft"
    elif target == "spdx":
        from pyaccount.integrations.spdx import missing, spdx

        text = spdx(certificate, subjects=subjects, model=model)
        options = {"version": "--model-version"}
        absent = [options.get(name, f"--{name.replace('_', '-')}") for name in missing(model)]
        if absent:
            note = f"it does not conform to the AI profile, which requires {', '.join(absent)} too"
    else:
        from pyaccount.integrations.cyclonedx import cyclonedx

        text = cyclonedx(certificate, subjects=subjects, model=model)
    code = save("result", output, text)
    if note is not None and code == HOLDS:
        from pyaccount.errors import printable

        tell(f"{printable(output or 'stdout')}: {note}")
    return code

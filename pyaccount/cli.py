"""The command line: results on stdout, everything else on stderr, exit codes as promised.

0 holds; 1 the claim does not hold; 2 the document (or the command) is wrong; 3 the machine's limits stopped it; 130 interrupted.
Heavy modules load inside the commands, so that `--help` and `validate` stay quick.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from pyaccount.certificate import Certificate
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.document import Amplification, Document
    from pyaccount.execute.progress import Report

HOLDS, FAILS, WRONG, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130

overrides_option = click.option(
    "--set",
    "overrides",
    metavar="PATH=VALUE",
    multiple=True,
    help="Replace one value, e.g. privacy.epsilon=4; repeatable.",
)
#: What a certificate can be printed as.
FORMS = ["text", "markdown", "json", "html"]
document_argument = click.argument("document", metavar="DOC")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="pyaccount", message="pyaccount %(version)s")
def commands() -> None:
    """Certify differential privacy: a mechanism document in, a proven privacy certificate out.

    \b
    Exit codes: 0 holds, 1 does not hold, 2 the document is wrong,
    3 stopped by a limit of time or memory, 130 interrupted.
    """


@commands.command()
@document_argument
@overrides_option
@click.option("-o", "--output", metavar="FILE", help="Write the certificate as JSON to FILE, whole or not at all.")
@click.option("--format", "form", type=click.Choice(FORMS), help="What to print on stdout [default: text].")
@click.option(
    "--threads",
    type=click.IntRange(0, 1024),
    default=0,
    help="Worker threads; 0: one for each core. Never changes the answer.",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), help="Fix the seed of sampled methods, as accounting.seed.")
@click.option("--quiet", is_flag=True, help="No progress; print the certificate only if --format is given.")
@click.option("--plot", metavar="FILE", help="Draw the aligned privacy profile of an amplification (svg, png, pdf).")
def certify(
    document: str,
    overrides: tuple[str, ...],
    output: str | None,
    form: str | None,
    threads: int,
    seed: int | None,
    quiet: bool,
    plot: str | None,
) -> int:
    """Certify DOC: fill its blank, check its claim, or tell what one draw does (kind: amplification).

    \b
    pyaccount certify training.yaml
    pyaccount certify training.yaml --set privacy.epsilon=4 -o training.cert.json
    """
    from pyaccount.document import Document  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    if output is not None:
        _check_writable("--output", Path(output))
    if plot is not None:
        from pyaccount.certificate.picture import ENDINGS  # noqa: PLC0415

        if Path(plot).suffix not in ENDINGS:
            raise click.UsageError(f"--plot {plot}: the file's name must end in {', '.join(ENDINGS)}")
        _check_writable("--plot", Path(plot))
    changes = (*overrides, *([f"accounting.seed={seed}"] if seed is not None else []))
    loaded = _load_any(document, changes)
    if not isinstance(loaded, Document):
        return _amplify(loaded, output=output, form=form, plot=plot, quiet=quiet)
    if plot is not None:
        raise click.UsageError("--plot is for documents of kind amplification")
    plan = compile_document(loaded)
    with _progress(quiet=quiet) as report:
        certificate = plan.run(threads=threads, report=report)
    if output is not None:
        certificate.save(output)
    if form is not None or not quiet:
        _show(certificate, form or "text")
    return HOLDS if certificate.holds else FAILS


@commands.command()
@click.argument("certificate", metavar="CERT")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the report to FILE, whole or not at all, instead of stdout."
)
@click.option(
    "--format", "form", type=click.Choice(FORMS), help="What to write [default: by FILE's ending; html without one]."
)
def report(certificate: str, output: str | None, form: str | None) -> int:
    """Turn CERT, a certificate in JSON, into one self-contained HTML page, Markdown or text.

    \b
    pyaccount certify training.yaml -o training.cert.json
    pyaccount report training.cert.json -o training.html
    pyaccount report training.cert.json --format markdown >> MODEL_CARD.md

    Nothing is computed anew and nothing is checked: the report says what CERT says. Whether the claim holds is part of the
    report, not of the exit code.
    """
    from pyaccount.certificate.certificate import write_atomically  # noqa: PLC0415
    from pyaccount.certificate.report import read  # noqa: PLC0415

    if output is not None:
        _check_writable("--output", Path(output))
    endings = {".md": "markdown", ".markdown": "markdown", ".txt": "text", ".json": "json"}
    form = form or endings.get(Path(output or "").suffix.lower(), "html")
    found = read(Path(certificate))
    if output is None:
        _show(found, form)
    else:
        write_atomically(Path(output), _written(found, form))
    return HOLDS


def _show(certificate: Certificate | AmplificationCertificate, form: str) -> None:
    """Print a certificate on stdout."""
    if form == "text":
        _print(_console(), certificate)
    else:
        click.echo(_written(certificate, form), nl=False)


def _written(certificate: Certificate | AmplificationCertificate, form: str) -> str:
    """A certificate in one of `FORMS`."""
    if form == "html":
        return certificate.to_html()
    if form == "markdown":
        return certificate.to_markdown()
    if form == "json":
        return certificate.to_json()
    import io  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    stream = io.StringIO()
    _print(Console(file=stream, width=110), certificate)
    return stream.getvalue()


def _print(console: Console, certificate: Certificate | AmplificationCertificate) -> None:
    from pyaccount.certificate import Certificate  # noqa: PLC0415

    if isinstance(certificate, Certificate):
        from pyaccount.certificate.text import print_certificate  # noqa: PLC0415

        print_certificate(console, certificate)
    else:
        from pyaccount.certificate.amplification import print_amplification  # noqa: PLC0415

        print_amplification(console, certificate)


@commands.command()
@document_argument
@overrides_option
@click.option("--estimate", is_flag=True, help="Ask the pilot for estimates of δ, σ and cost, by sampling a little.")
@click.option(
    "--threads", type=click.IntRange(0, 1024), default=0, help="Worker threads of the pilot; 0: one for each core."
)
def plan(document: str, overrides: tuple[str, ...], estimate: bool, threads: int) -> int:
    """Show how DOC would be analysed: each theorem, the engine, the cost. Nothing is computed, unless --estimate asks."""
    from pyaccount.certificate.plan_text import print_plan  # noqa: PLC0415
    from pyaccount.document import Document  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    loaded = _load_any(document, overrides)
    if not isinstance(loaded, Document):
        from pyaccount.certificate.amplification import print_amplification_plan  # noqa: PLC0415
        from pyaccount.plan.amplification import compile_amplification  # noqa: PLC0415

        print_amplification_plan(_console(), compile_amplification(loaded))
        return HOLDS
    compiled = compile_document(loaded)
    found = None
    if estimate:
        from pyaccount.execute.sampling.forecast import forecast  # noqa: PLC0415

        with _progress(quiet=False) as report:
            found = forecast(compiled, threads=threads, report=report)
    print_plan(_console(), compiled, found)
    return HOLDS


@commands.command()
@click.argument("documents", metavar="DOC...", nargs=-1, required=True)
@overrides_option
@click.option("-o", "--output", metavar="FILE", help="Write the comparison as JSON to FILE, whole or not at all.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", help="What to print [text]."
)
@click.option("--threads", type=click.IntRange(0, 1024), default=0, help="Worker threads; 0: one for each core.")
def compare(documents: tuple[str, ...], overrides: tuple[str, ...], output: str | None, form: str, threads: int) -> int:
    """Certify each DOC and lay the certificates side by side.

    \b
    pyaccount compare poisson.yaml fixed-size.yaml must.yaml --set privacy.delta=1e-6
    pyaccount compare *.yaml --format markdown
    """
    from pyaccount.certificate.certificate import write_atomically  # noqa: PLC0415
    from pyaccount.certificate.comparison import compare as compute  # noqa: PLC0415
    from pyaccount.certificate.comparison import print_comparison  # noqa: PLC0415
    from pyaccount.errors import DocumentError  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415

    if output is not None:
        _check_writable("--output", Path(output))
    plans, wrong = [], False
    for document in documents:
        try:
            plans.append(compile_document(_load(document, overrides)))
        except DocumentError as error:
            click.echo(str(error), err=True)
            wrong = True
    if wrong:
        return WRONG
    with _progress(quiet=False) as report:
        comparison = compute(plans, threads=threads, report=report)
    if output is not None:
        write_atomically(Path(output), comparison.to_json())
    if form == "json":
        click.echo(comparison.to_json(), nl=False)
    elif form == "markdown":
        click.echo(comparison.to_markdown(), nl=False)
    else:
        print_comparison(_console(wide=True), comparison)
    return HOLDS if all(row.holds for row in comparison.rows) else FAILS


@commands.command()
@click.argument("documents", metavar="DOC...", nargs=-1, required=True)
@overrides_option
def validate(documents: tuple[str, ...], overrides: tuple[str, ...]) -> int:
    """Report every error of each DOC, with file, line and column; policies too. Nothing is computed."""
    from pyaccount.document import Amplification, Document, load_written  # noqa: PLC0415
    from pyaccount.errors import DocumentError  # noqa: PLC0415
    from pyaccount.plan import compile_document  # noqa: PLC0415
    from pyaccount.plan.amplification import compile_amplification  # noqa: PLC0415

    status = HOLDS
    for document in documents:
        try:
            loaded = load_written(document, overrides=overrides)
            if isinstance(loaded, Document):
                compile_document(loaded)
            elif isinstance(loaded, Amplification):
                compile_amplification(loaded)
        except DocumentError as error:
            click.echo(str(error), err=True)
            status = WRONG
        else:
            click.echo(f"{document}: valid")
    return status


@commands.command()
@click.argument("certificate", metavar="CERT")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Of the verdict [text].")
@click.option("--threads", type=click.IntRange(0, 1024), default=0, help="Worker threads; 0: one for each core.")
@click.option("--time-limit", metavar="TIME", help="The longest it may take, e.g. `10 min` [default: the document's].")
@click.option("--folder", metavar="DIR", help="Where files lie that the document names [default: beside CERT].")
@click.option("--same-version", is_flag=True, help="Accept no certificate that names another version.")
@click.option("--quiet", is_flag=True, help="No progress, and no text if it agrees.")
def verify(
    certificate: str,
    form: str,
    threads: int,
    time_limit: str | None,
    folder: str | None,
    same_version: bool,
    quiet: bool,
) -> int:
    """Recompute CERT from the document inside it, and name everything that does not agree.

    \b
    pyaccount verify training.cert.json
    pyaccount verify training.cert.json --time-limit "10 min" --format json

    \b
    Exit codes: 0 agrees, 1 does not, 2 cannot be read,
    3 stopped by a limit of time or memory, 130 interrupted.
    """
    from pyaccount.document.numerals import parse_duration, parse_number  # noqa: PLC0415
    from pyaccount.gate.verify import verify as recompute  # noqa: PLC0415

    seconds = None
    if time_limit is not None:
        spelled = parse_duration(time_limit)
        seconds = parse_number(time_limit) if spelled is None else spelled
        if seconds is None or not 0.0 < seconds < float("inf"):
            raise click.UsageError(f"--time-limit {time_limit}: a time such as 30 s, 10 min or 2 h is expected")
    with _progress(quiet=quiet) as report:
        verification = recompute(
            certificate, threads=threads, time_limit=seconds, report=report, folder=folder, same_version=same_version
        )
    if form == "json":
        click.echo(verification.to_json(), nl=False)
    elif not (quiet and verification.agrees):
        click.echo(verification.to_text(), nl=False)
    return HOLDS if verification.agrees else FAILS


@commands.command()
@click.argument("certificates", metavar="CERT...", nargs=-1, required=True)
@click.option("--policy", metavar="FILE", help="Limits in a file: a document of kind policy.")
@click.option("--max-epsilon", metavar="E", help="ε at most; with --max-delta at a δ within that limit.")
@click.option("--max-delta", metavar="D", help="δ at most.")
@click.option("--adjacency", metavar="A", multiple=True, help="The accepted adjacency; repeat to accept several.")
@click.option("--unit", metavar="UNIT", help="What must be protected: record or user.")
@click.option("--group-size", metavar="K", help="At least so many must be protected together.")
@click.option(
    "--guarantee",
    metavar="KIND",
    multiple=True,
    help="The least acceptable kind: deterministic, verified or confidence; of several the weakest.",
)
@click.option("--max-failure-probability", metavar="Q", help="How likely the guarantee may be false.")
@click.option("--max-age", metavar="TIME", help="How old the certificate may be, e.g. 90d.")
@click.option("--document-sha256", metavar="HASH", multiple=True, help="The accepted document; repeat for several.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Of the verdict [text].")
@click.option("--quiet", is_flag=True, help="No text about what passes.")
def check(certificates: tuple[str, ...], policy: str | None, form: str, quiet: bool, **limits: object) -> int:
    """Hold each CERT against limits: the gate for continuous integration and deployment.

    What a certificate says must fit together, its claim must hold, and it must keep every limit of the policy and of the
    options. Nothing is recomputed: `pyaccount verify` does that.

    \b
    pyaccount check training.cert.json --max-epsilon 8 --max-delta 1e-5 --adjacency add-remove
    pyaccount check certificates/*.json --policy policy.yaml --max-age 90d --format json

    \b
    Exit codes: 0 passes, 1 a limit or the claim fails, 2 a file or a limit is wrong.
    """
    from pyaccount.gate.check import check as judge  # noqa: PLC0415

    # The empty text is a wrong limit, not an absent one: an unset variable of a script shall not open the gate.
    given = {name: value for name, value in limits.items() if value not in (None, ())}
    places = {
        name: f"--{name.replace('_', '-')} {' '.join(value) if isinstance(value, tuple) else value}"
        for name, value in given.items()
    }
    verdict = judge(certificates, policy=policy, limits=given, places=places)
    for judged in verdict.certificates:
        if judged.error is not None:
            click.echo(judged.error, err=True)
    if form == "json":
        click.echo(verdict.to_json(), nl=False)
    elif not (quiet and verdict.passes):
        click.echo(verdict.to_text(), nl=False)
    return WRONG if not verdict.readable else HOLDS if verdict.passes else FAILS


@commands.command()
@click.argument("which", metavar="[NAME]", default="mechanism")
def schema(which: str) -> int:
    """Print the JSON Schema of mechanism documents, or of what else has one.

    \b
    pyaccount schema certificate
    """
    import json  # noqa: PLC0415

    from pyaccount.schemas import SCHEMAS  # noqa: PLC0415

    if which not in SCHEMAS:
        raise click.UsageError(f"no schema {which}: there are {', '.join(SCHEMAS)}")
    click.echo(json.dumps(SCHEMAS[which](), indent=2, ensure_ascii=False))
    return HOLDS


def _progress(*, quiet: bool) -> AbstractContextManager[Report | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from pyaccount.execute.bar import progress_bar  # noqa: PLC0415

    return progress_bar()


def _load(document: str, overrides: tuple[str, ...]) -> Document:
    from pyaccount.document import load  # noqa: PLC0415

    return load(document, overrides=overrides)


def _load_any(document: str, overrides: tuple[str, ...]) -> Document | Amplification:
    from pyaccount.document import load_any  # noqa: PLC0415

    return load_any(document, overrides=overrides)


def _amplify(document: Amplification, *, output: str | None, form: str | None, plot: str | None, quiet: bool) -> int:
    from pyaccount.certificate.amplification import amplify  # noqa: PLC0415

    certificate = amplify(document)
    if plot is not None:
        from pyaccount.certificate.picture import aligned_profile  # noqa: PLC0415

        aligned_profile(certificate, Path(plot))
    if output is not None:
        certificate.save(output)
    if form is not None or not quiet:
        _show(certificate, form or "text")
    return HOLDS


def _console(*, wide: bool = False) -> Console:
    """A console for stdout: the terminal's width there, a fixed one in files and pipes."""
    from rich.console import Console  # noqa: PLC0415

    return Console() if sys.stdout.isatty() else Console(width=180 if wide else 110)


def _check_writable(option: str, path: Path) -> None:
    """Find out before the work, not after it, that the result has nowhere to go."""
    if path.is_dir():
        raise click.UsageError(f"{option} {path}: is a folder")
    if not path.parent.is_dir():
        raise click.UsageError(f"{option} {path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise click.UsageError(f"{option} {path}: the folder {path.parent} may not be written to")


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; every expected failure becomes a message on stderr."""
    try:
        return int(commands.main(args=arguments, prog_name="pyaccount", standalone_mode=False) or HOLDS)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return WRONG
    except click.ClickException as error:
        error.show()
        return WRONG
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted: nothing was certified", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has gone; what it wanted, it has. Keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return HOLDS
    except OSError as error:
        click.echo(f"{error.filename or 'input or output'}: {error.strerror or error}", err=True)
        return STOPPED
    except Exception as error:
        from pyaccount.errors import PyaccountError  # noqa: PLC0415

        if not isinstance(error, PyaccountError):
            raise
        click.echo(str(error), err=True)
        return error.exit_code


def main() -> None:
    """The `pyaccount` command."""
    sys.exit(run())


if __name__ == "__main__":
    main()

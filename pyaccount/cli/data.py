"""The command that prepares data of users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pyaccount.cli.common import HOLDS, STDOUT, check_writable, files_of, print_result, printing, source_of, tell_notes
from pyaccount.cli.completion import FILE, folders_option, overrides_option
from pyaccount.cli.options import format_option, options, seed_option
from pyaccount.cli.outputs import save
from pyaccount.document.naming import named_files
from pyaccount.reading import numerals

if TYPE_CHECKING:
    from pyaccount.document.document import Document


class NeighbourLimit(click.ParamType[int | Literal["rule"]]):
    """A number of records, or the word `rule` for the rule of thumb."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["rule"]:
        """Return the number, or the word `rule`."""
        if value == "rule":
            return "rule"
        return click.IntRange(1).convert(value, param, ctx)


class RecordsInBatch(click.ParamType[float]):
    """An expected number of records, written as in documents."""

    name = "records"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. A text such as `6.000` is rejected, because it may mean six thousand."""
        if (text := numerals.with_separators(value)) is not None:
            self.fail(numerals.two_readings(text), param, ctx)
        number = numerals.parse_number(value) if isinstance(value, str) else value
        if number is None:
            meant = numerals.meant(value)
            self.fail(f"{value!r} is not a number" + (f"; did you mean {meant}?" if meant else ""), param, ctx)
        return float(number)


@click.command(short_help="Bound the number of records per user, and find the sampling probability.")
@click.argument("table", metavar="TABLE", type=FILE)
@options(
    """
    --records-per-user K! | Maximum number of records to keep per user.
    --document DOC | The document to fill in (- means stdin).
    """,
    records_per_user=click.IntRange(1),
)
@overrides_option
@folders_option
@options(
    """
    -o, --output FILE | Write the filled document to FILE, as YAML.
    --records FILE | Write the pairs of record and user that were kept to FILE, as CSV.
    --expected-batch-size B | Find the sampling probability with this expected batch size.
    --sampling-probability P | Report the expected batch size at this sampling probability.
    --min-separation B | Minimum distance between two participations, in rounds [the value in DOC].
    --neighbour-limit K | Drop records that share a user with more than K records, counting the record itself; `rule` chooses K
        by a rule of thumb.
    --drop-shared | Drop records that have several users.
    """,
    expected_batch_size=RecordsInBatch(),
    sampling_probability=float,
    min_separation=click.IntRange(1),
    neighbour_limit=NeighbourLimit(),
)
@seed_option("the order in which records are considered")
@click.option("--record-column", metavar="NAME", default="record", help="Name of the column with the records [record].")
@click.option("--user-column", metavar="NAME", default="user", help="Name of the column with the users [user].")
@format_option("the report")
def prepare(
    table: str,
    document: str | None,
    overrides: tuple[str, ...],
    folders: tuple[str, ...],
    output: str | None,
    records: str | None,
    record_column: str,
    user_column: str,
    form: str,
    **limits: Any,
) -> int:
    """Keep at most K records of each user in TABLE, a CSV or Parquet file with a row for each record and each of its users.

    A CSV file is in UTF-8 with commas between values. Its first line names the columns: record and user, or the names given with
    --record-column and --user-column.

    The report lists what was dropped and why, and the values that a document needs for the records that were kept. The report
    is not private.

    \b
    Examples:
      pyaccount prepare authors.csv --records-per-user 2 --records kept.csv
      pyaccount prepare authors.csv --records-per-user 2 --min-separation 8 --expected-batch-size 5
      pyaccount prepare authors.csv --records-per-user 2 --document users-sharing-records.yaml -o prepared.yaml

    \b
    Exit codes: 0 prepared, 2 the table, the document or an option is wrong, 3 a result could not be
    written where it was asked for.
    """
    from dataclasses import replace

    from pyaccount.data.prepare import prepare as compute
    from pyaccount.data.reading import NAMES_THEM
    from pyaccount.document.loading import load
    from pyaccount.errors import TableError

    inputs = [table, *files_of(document)]
    for option, file in (("--output", output), ("--records", records)):
        if file == STDOUT:
            raise click.UsageError(
                f"{option} needs the name of a file, because the report is printed to standard output"
            )
        if file is not None:
            check_writable(option, Path(file), inputs)
    if output is not None and records is not None and Path(output).resolve() == Path(records).resolve():
        raise click.UsageError(f"--records {records}: is also the file of the document (--output); give another name")
    if overrides and document is None:
        raise click.UsageError("--set changes the document: give --document too")
    loaded = None if document is None else load(source_of(document), overrides=overrides, folders=folders)
    if loaded is not None:
        tell_notes(loaded)
        _check_folder(loaded, output)
    try:
        prepared = compute(table, document=loaded, columns=(record_column, user_column), **limits)
    except TableError as error:
        options = "--record-column and --user-column name the columns"
        raise TableError(
            replace(problem, message=problem.message.replace(NAMES_THEM, options)) for problem in error.problems
        ) from error
    code = HOLDS if output is None else save("document", output, prepared.to_yaml())
    if records is not None:
        code = max(code, save("table", records, prepared.to_csv(), errors="surrogatepass"))
    with printing():
        print_result(prepared.report, form)
    return code


def _check_folder(document: Document, output: str | None) -> None:
    """Reject an output in another folder if the document names files, since they are looked for beside it."""
    folder = Path(document.file or "").parent
    if output is None or not named_files(document) or Path(output).resolve().parent == folder.resolve():
        return
    raise click.UsageError(
        f"--output {output}: the document names a file beside it; write the prepared document to {folder}"
    )

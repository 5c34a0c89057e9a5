"""The command for sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyaccount.cli.certify import check_drawing, check_plot
from pyaccount.cli.common import WIDE, check_output, code_of, files_of, progress, source_of, tell, telling_warnings
from pyaccount.cli.completion import documents_argument
from pyaccount.cli.options import (
    executor_at,
    options,
    output_format_option,
    output_option,
    running_options,
    threads_option,
)
from pyaccount.cli.outputs import RequestedOutput, hand_over
from pyaccount.forms import TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.store import Strictness

#: With more cells than this, the sweep must be confirmed.
MOST = 10_000


@click.command(short_help="Certify every cell of a document with `vary:`, or several documents.")
@documents_argument
@output_option("table")
@output_format_option([form for form in TABLES if form != "parquet"])
@options("""
    --certificates FOLDER | Write the certificate of each cell to FOLDER.
    --plot FILE | Draw the results (svg, png or pdf).
    --plot-x AXIS | The x axis of the picture: a path that varies, epsilon, delta, noise, value (of the blank), error or
        workload-error [the path that varies].
    --plot-y AXIS | The y axis of the picture [value; epsilon if the documents are claims].
""")
@threads_option(more=" It does not change the result.")
@running_options
@click.option("--yes", is_flag=True, help=f"Run the sweep even if it has more than {MOST:_} cells.")
@click.option("--quiet", is_flag=True, help="Do not show progress. The table is printed only if --format is given.")
def sweep(
    documents: tuple[str, ...],
    output: str | None,
    form: str | None,
    certificates: str | None,
    plot: str | None,
    plot_x: str | None,
    plot_y: str | None,
    threads: int,
    store: str | None,
    store_errors: Strictness,
    cluster: str | None,
    yes: bool,
    quiet: bool,
    **given: tuple[str, ...],
) -> int:
    """Certify every cell of DOC, a document that lists under `vary:` the values to try; or certify each of several documents.

    \b
    Examples:
      pyaccount sweep sweep.yaml
      pyaccount sweep sweep.yaml --set accounting.tolerance=0.01 -o sweep.csv --store runs.db
      pyaccount sweep poisson.yaml fixed-size.yaml --format markdown

    If a cell fails, its row states why; the other cells are certified nevertheless. With --store, finished cells are not
    computed again.

    \b
    Exit codes: 0 all claims hold. Otherwise the first of these that applies:
    2 a document is wrong, 3 a cell was stopped by a limit, 1 a claim does not hold.
    """
    from pyaccount.document.sweeps import load_grid
    from pyaccount.errors import DomainError
    from pyaccount.sweeping.run import SweepOptions, certified_cells, checked_size
    from pyaccount.sweeping.table import import_parquet, sweep_text

    files = [*files_of(*documents), *([store] if store is not None else [])]
    check_output(output, files, form, only="json")
    if plot is None and (plot_x is not None or plot_y is not None):
        raise click.UsageError("--plot-x and --plot-y are the axes of the picture of --plot: give --plot FILE too")
    check_plot(plot, output, files)
    asked = RequestedOutput.checked(output, form, TABLES, quiet=quiet)
    sources = [source_of(document) for document in documents]
    grid = load_grid(sources[0] if len(sources) == 1 else sources, **given)
    if not yes:
        checked_size(grid, MOST, "--yes")
    if asked.written == "parquet":
        import_parquet()
    if plot is not None:
        _check_axes(grid.varied, plot_x, plot_y)
        check_drawing(plot)
    with telling_warnings(), progress(quiet=quiet) as report, executor_at(cluster) as executor:
        how = SweepOptions(
            threads=threads,
            report=report,
            store=None if store is None else Path(store),
            store_errors=store_errors,
            executor=executor,
            certificates=None if certificates is None else Path(certificates),
        )
        try:
            results = certified_cells(grid, how)
        except KeyboardInterrupt:
            kept = " and in ".join(place for place in (store, certificates) if place is not None)
            tell(
                f"finished cells are stored in {kept}" if kept else "no cell was stored: use --store FILE to store them"
            )
            raise

    code = hand_over("table", lambda form: sweep_text(results, form), lambda: [results.page()], asked, piped=WIDE)
    if plot is not None:
        try:
            results.plot(plot, x=plot_x, y=plot_y)
        except DomainError as error:
            raise click.UsageError(f"--plot {plot}: {error}") from error
    return code or code_of({one.why for one in results.failures}, holds=results.holds)


def _check_axes(varied: Sequence[str], *asked: str | None) -> None:
    """Reject axes that cannot be drawn, before the work begins."""
    from pyaccount.sweeping.picture import QUANTITIES

    for name in asked:
        if name is not None and name not in varied and name not in QUANTITIES:
            known = ", ".join((*varied, *QUANTITIES))
            raise click.UsageError(f"--plot-x, --plot-y: {name} is not one of {known}")

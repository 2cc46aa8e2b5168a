"""``gramian claims``."""

import sys
from collections import Counter

from gramian.claims.page import details, page
from gramian.claims.paper import claims
from gramian.claims.rules import VERDICTS, judge
from gramian.claims.tables import Tables
from gramian.cli.options import ClaimsOptions
from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text


def claims_command(options: ClaimsOptions) -> int:
    """See `ClaimsOptions`."""
    if not options.results.is_dir():
        raise UserError(f"there is no folder '{options.results}'; name the folder of the tables: --results FOLDER")
    tables = Tables(options.results)
    entries = [judge(claim, tables) for claim in claims()]
    output_folder(options.out.parent)
    beside = options.out.with_stem(f"{options.out.stem}-details")
    replace_text(beside, details(entries))
    replace_text(options.out, page(entries, beside.name))
    counts = Counter(entry.verdict for entry in entries)
    for entry in entries:
        print(f"{entry.verdict:<15}  {entry.claim.title}")
        for part, found in entry.elsewhere:
            print(f"  {found.verdict:<15}  {part.setting}")
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]))
    print(f"page in {options.out}", file=sys.stderr)
    return 0

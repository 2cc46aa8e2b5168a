"""The claims of the paper beside what was measured: every verdict is computed from a table in ``results/``.

``ledger.toml`` names each claim, the tables, the numbers to take from them and the rule that makes a verdict of them;
nothing in it is a result. Reads files only.
"""

from gramian.claims.ledger import Claim, Entry, judge, load_ledger
from gramian.claims.number import Number
from gramian.claims.page import page
from gramian.claims.tables import Tables

__all__ = ["Claim", "Entry", "Number", "Tables", "judge", "load_ledger", "page"]

"""The claims of the paper beside what was measured: every verdict is computed from a table in ``results/``.

``paper`` has each claim, the numbers to take from the tables and the rule that makes a verdict of them; it has no
result. Reads files only.
"""

from gramian.claims.page import details, page
from gramian.claims.paper import claims
from gramian.claims.rules import Claim, Entry, judge
from gramian.claims.tables import Number, Tables

__all__ = ["Claim", "Entry", "Number", "Tables", "claims", "details", "judge", "page"]

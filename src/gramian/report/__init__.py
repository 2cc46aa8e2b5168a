"""Reports: from the files of a study to tables, figures and a page. Reads files and knows no learner."""

from gramian.report.analysis import Options
from gramian.report.build import build

__all__ = ["Options", "build"]

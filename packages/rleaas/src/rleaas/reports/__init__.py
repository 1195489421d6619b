"""Reports of evaluations for people: a page, a table of comma-separated values, lines of text."""

from rleaas.reports.csv_cells import as_csv, harmless
from rleaas.reports.page import fragment, page

__all__ = ["as_csv", "fragment", "harmless", "page"]

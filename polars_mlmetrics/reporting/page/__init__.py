"""The page of a report: a file for each section, and its part of the template beside it."""

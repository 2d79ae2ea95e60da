"""Reporting: plots, tables for notebooks, and the report."""

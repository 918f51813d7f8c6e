"""Contingency tables: counting, association, exact laws."""

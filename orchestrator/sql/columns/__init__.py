"""Finds the columns of tables, views and queries, and wrong names; unknown parts give no finding."""

"""Finds the columns of tables, views and queries, and names that do not exist; unknown parts give no finding."""

"""Scripts for the tests of lint, plan and fmt."""

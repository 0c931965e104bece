"""Coverage-guided tests of what reads text of others: atheris makes inputs, targets state the promises."""

"""Coverage-guided tests of parsers of foreign text: atheris makes inputs, targets check the promises."""

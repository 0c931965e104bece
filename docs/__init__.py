"""The documentation: Markdown files, and the scripts that make the generated parts of them."""

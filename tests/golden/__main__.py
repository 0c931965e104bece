"""`python -m tests.golden` writes all expectations anew; then `git diff` shows each change for a review."""

from tests.golden.cases import scripts, write
from tests.golden.rendering import RENDERERS

if __name__ == "__main__":
    for kind, render in RENDERERS.items():
        for path in scripts(kind):
            write(path, render)

"""`python -m docs` makes all generated parts of the pages anew."""

import sys

from docs.generated import parts

for part in parts():
    if part.write():
        sys.stdout.write(f"{part.page}\n")

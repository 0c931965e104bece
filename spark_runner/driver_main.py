"""The main file that spark-submit gets; run by its path, it hands over to `spark_runner.driver`."""

import sys

if __name__ == "__main__":
    # Python put this file's folder first on the path; its siblings would hide a user's modules of that name.
    sys.path.pop(0)
    from spark_runner.quick_imports import prepare_imports

    prepare_imports()
    from spark_runner.driver import main

    sys.exit(main(sys.argv[1:]))

"""The main file for spark-submit, which runs it by path; it calls `spark_runner.driver.driver`."""

import sys

if __name__ == "__main__":
    # Python puts the folder of this file first on the path, where its siblings would hide a user's modules.
    sys.path.pop(0)
    from spark_runner.driver.quick_imports import prepare_imports

    prepare_imports()
    from spark_runner.driver.driver import main

    sys.exit(main(sys.argv[1:]))

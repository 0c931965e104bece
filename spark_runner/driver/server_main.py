"""The main file of a warm server: spark-submit runs it by its path, like `driver_main`."""

import sys

if __name__ == "__main__":
    sys.path.pop(0)
    from spark_runner.driver.quick_imports import prepare_imports

    prepare_imports()
    from spark_runner.driver.warm_server import main

    sys.exit(main(sys.argv[1:]))

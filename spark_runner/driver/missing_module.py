"""What a user does about a Python module that the driver or a task does not find."""

from pathlib import Path

# Packages whose name is not that of their module; others need no entry.
_PACKAGES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def remedy(module: str, directory: str) -> str:
    """The place of the definition where a module belongs; `directory` is its folder."""
    name = module.partition(".")[0]
    if directory and Path(directory, f"{name}.py").is_file():
        return (
            f"'{name}.py' lies beside the program, where tasks on other hosts do not find it; write in the"
            f" definition: spark: {{py_files: [{name}.py]}}"
        )
    if directory and Path(directory, name).is_dir():
        return (
            f"the folder '{name}' lies beside the program, where tasks on other hosts do not find it; pack it"
            f" into {name}.zip, and write in the definition: spark: {{py_files: [{name}.zip]}}"
        )
    return (
        f"if '{name}' is a package, write in the definition: requirements: [{_PACKAGES.get(name, name)}], or"
        " install it in the Python of the pool; if it is your own file, name it in spark.py_files"
    )

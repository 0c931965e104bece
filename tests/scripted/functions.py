"""The functions of test programs, the same for scripted drivers and for real ones.

attempt          number of this attempt, from 1
sleep(seconds)
until(path)      wait until the file exists
fail(message)    an error of the user's code
leave(code)      end with this exit code, without an outcome
vanish()         end without an exit code
hang()           never end
say(words)       write a line to the log

Scripted drivers alone have these:

measure(**metrics)   report these measurements, and as settings the Spark properties of the submission
run_out(short_of)    fail with class memory
"""

from pathlib import Path

_PRELUDE = """
import json, os, pathlib, signal, time
run = os.environ["ORCHESTRATOR_RUN"]
attempt = int(run.rpartition("-")[2])
with open({ledger!r}, "a") as file:
    line = {{"event": "start", "run": run, "incarnation": os.environ["ORCHESTRATOR_INCARNATION"],
            "at": time.time()}}
    file.write(json.dumps(line) + "\\n")
sleep, leave = time.sleep, os._exit
def say(words): print(words, flush=True)
def fail(message): raise RuntimeError(message)
def until(path):
    while not pathlib.Path(path).exists(): time.sleep(0.02)
def hang():
    while True: time.sleep(0.1)
def vanish():  # its shim dies, and the kernel ends what that has started
    shim = json.loads(pathlib.Path(os.environ["ORCHESTRATOR_RUN_DIR"], "shim.json").read_text())
    os.kill(shim["pid"], signal.SIGKILL)
    hang()
"""


def for_real_drivers(program: str, ledger: Path) -> str:
    """The program as a Python file that defines these functions, for a process of its own."""
    return _PRELUDE.format(ledger=str(ledger)) + program

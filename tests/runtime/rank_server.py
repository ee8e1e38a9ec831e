"""One rank that is kept: it runs a script for each line that it reads, and says as a line how that ended."""

import json
import runpy
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO


def ran(script: str, arguments: list[str]) -> tuple[int, str, str]:
    """Run a script as a program; give its exit code and what it wrote."""
    out, err, code = StringIO(), StringIO(), 0
    sys.argv = [script, *arguments]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(script, run_name="__main__")
        except BaseException:
            traceback.print_exc()
            code = 1
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(ran(*json.loads(line))), flush=True)

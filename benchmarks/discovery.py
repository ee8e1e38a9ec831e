"""Print how much longer an architecture takes to be found among many installed plugins than where it is alone.

Each plugin is a distribution of its own, as an installer leaves it: metadata, entry points, one module. What is timed
is `PluginManager().architecture(NAME)` in a process that has imported the manager and nothing else; how many of the
plugins' modules were imported is counted, and must be one. A row is a median over rounds, taken in turn.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 9
TARGET = 3.0
MANY = 200
MODULE = """
from weightloom.plugins import Architecture, hookimpl

class Plugin:
    @hookimpl
    def weightloom_architectures(self):
        yield Architecture(name="{name}", model_types=("{name}",), task="generate", adapters="none",
                           read_config=dict, build=list)

PLUGIN = Plugin()
"""
PROBE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from weightloom.plugins.discovery.manager import PluginManager
start = time.perf_counter()
found = PluginManager().architecture("made_up_0")
taken = time.perf_counter() - start
print(json.dumps([taken, sum(name.startswith("made_up_") for name in sys.modules)]))
"""


def install(site: Path, count: int) -> Path:
    """Put `count` plugins into a folder."""
    for number in range(count):
        name = f"made_up_{number}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[weightloom.plugins]\n{name} = {name}:PLUGIN\n")
        (site / f"{name}.py").write_text(MODULE.format(name=name))
    return site


def probe(site: Path) -> tuple[float, int]:
    """Give the seconds that finding takes in a fresh process, and how many plugins were imported."""
    done = subprocess.run([sys.executable, "-c", PROBE, str(site)], capture_output=True, text=True, check=True)
    seconds, imported = json.loads(done.stdout)
    return float(seconds), int(imported)


def main() -> int:
    """Measure and print; 1 when the ratio is over, or a plugin was imported that nothing asked for."""
    with tempfile.TemporaryDirectory() as folder:
        sites = {count: install(Path(folder) / str(count), count) for count in (1, MANY)}
        for site in sites.values():
            probe(site)  # the first run compiles to bytecode
        rounds = [{count: probe(site) for count, site in sites.items()} for _ in range(ROUNDS)]
    seconds = {count: median(taken[count][0] for taken in rounds) for count in sites}
    imported = max(taken[count][1] for taken in rounds for count in sites)
    ratio = seconds[MANY] / seconds[1]
    print(f"{'plugins':>8}{'ms':>8}{'ratio':>8}  target <= {TARGET:g}")
    print(f"{1:>8}{seconds[1] * 1e3:>8.1f}{1:>8.1f}")
    print(f"{MANY:>8}{seconds[MANY] * 1e3:>8.1f}{ratio:>8.1f}  {'ok' if ratio <= TARGET else 'over'}")
    print(f"plugins imported: {imported}")
    return int(ratio > TARGET or imported != 1)


if __name__ == "__main__":
    raise SystemExit(main())

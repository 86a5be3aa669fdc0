"""Where and when the trials were made."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def now() -> str:
    """Day and hour."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def load() -> str:
    """The load averages."""
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def processor() -> dict[str, str]:
    """What Linux says of the first CPU."""
    first = text("/proc/cpuinfo").partition("\n\n")[0]
    return fields(first)


def machine() -> str:
    """CPU, memory and system in one line."""
    cpu = processor()
    return (
        f"{cpu.get('model name', platform.machine())}, family {cpu.get('cpu family', '?')} "
        f"model {cpu.get('model', '?')}, {os.cpu_count()} CPUs, {memory()}, Linux {platform.release()}, "
        f"{hypervisor(cpu)}, transparent huge pages {thp()}"
    )


def memory() -> str:
    """How much memory there is."""
    total = fields(text("/proc/meminfo")).get("MemTotal", "0 kB")
    return f"{int(total.split()[0]) / 1024**2:.1f} GiB"


def hypervisor(cpu: dict[str, str]) -> str:
    """Whose virtual machine this is."""
    if "hypervisor" not in cpu.get("flags", "").split():
        return "no hypervisor"
    name = fields(said("lscpu")).get("Hypervisor vendor", "that is not named")
    return f"hypervisor {name}"


def thp() -> str:
    """The setting of transparent huge pages that is chosen."""
    setting = text(str(THP))
    return setting.partition("[")[2].partition("]")[0] or "not there"


def version(lookaside: Path) -> str:
    """The version that was tried, and the revision of the sources."""
    revision = said("git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD").strip()
    return f"{said(str(lookaside), '--version').strip()}, sources {revision or 'of no revision'}"


def fields(lines: str) -> dict[str, str]:
    """Names and values, a line each, with a colon between."""
    pairs = (line.partition(":") for line in lines.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def text(file: str) -> str:
    """A file of the system; nothing if it is not there."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return ""


def said(*command: str) -> str:
    """What a command prints; nothing if it can't."""
    try:
        return subprocess.run(list(command), capture_output=True, text=True, env=plain()).stdout
    except OSError:
        return ""


def plain() -> dict[str, str]:
    """The environment, in English."""
    return {**os.environ, "LC_ALL": "C"}


def conditions(lookaside: Path, began: str, loads: Sequence[str]) -> list[str]:
    """A line for each thing that the figures depend on."""
    return [
        f"{began} to {now()}",
        machine(),
        f"load {loads[0]} at the beginning, {loads[-1]} at the end",
        version(lookaside),
    ]

"""What the machine is and does while a benchmark runs."""
import datetime
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def steal_ticks():
    """Time that the host gave to others, of all CPUs since boot, and all time."""
    with open("/proc/stat") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def clock_mhz():
    """The mean clock of all CPUs now, or nothing where the kernel does not say."""
    with open("/proc/cpuinfo") as info:
        clocks = [float(match) for match in re.findall(r"^cpu MHz\s*:\s*([0-9.]+)", info.read(), re.MULTILINE)]
    return sum(clocks) / len(clocks) if clocks else None


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")


def commit():
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()
    changed = "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def likwid_gb_per_s(threads):
    """Read bandwidth as likwid-bench's load kernels see it: {megabytes: best GB/s}, or nothing without that program."""
    program = shutil.which("likwid-bench")
    if program is None:
        return None
    best = {}
    for megabytes in (96, 1024):
        for kernel in ("load", "load_avx", "load_avx512"):
            done = subprocess.run([program, "-t", kernel, "-w", f"S0:{megabytes}MB:{threads}"], capture_output=True, text=True)
            match = re.search(r"^MByte/s:\s*([0-9.]+)", done.stdout, re.MULTILINE)
            if match:
                best[megabytes] = max(best.get(megabytes, 0.0), float(match.group(1)) / 1000)
    return best or None


class Watch:
    """Steal and clock over a time: start it, then ask."""

    def __init__(self):
        self.steal, self.time = steal_ticks()
        self.clocks = []

    def look(self):
        clock = clock_mhz()
        if clock is not None:
            self.clocks.append(clock)

    def report(self):
        steal, time = steal_ticks()
        return {"cpu": cpu_name(), "cores": os.cpu_count(), "commit": commit(), "date": datetime.date.today().isoformat(),
                "load_average": os.getloadavg()[0], "steal": (steal - self.steal) / max(1, time - self.time),
                "clock_mhz": {"min": min(self.clocks), "max": max(self.clocks)} if self.clocks else None}

"""A disk that takes longer: every fsync and fdatasync of a process, SQLite's own too, takes at least so many seconds.

What a disk is asked to make durable is made durable as before; only the answer comes later. Needs gcc, and a loader
that knows LD_PRELOAD.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_LEAST = "ONESTART_BENCH_SYNC_NS"

_SOURCE = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int descriptor) {{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int result = ((int (*)(int)) dlsym(RTLD_NEXT, name))(descriptor);
    long end = until.tv_nsec + atol(getenv("{_LEAST}"));
    until.tv_sec += end / 1000000000;
    until.tv_nsec = end % 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return result;
}}

int fsync(int descriptor) {{ return slowly("fsync", descriptor); }}
int fdatasync(int descriptor) {{ return slowly("fdatasync", descriptor); }}
"""


def again_with_slow_syncs(seconds: float) -> int:
    """Run this very program once more, as on such a disk. Returns its exit status, or 2 if there is no gcc."""
    compiler = shutil.which("gcc")
    if compiler is None:
        print("a slower disk is made with gcc, which is not there", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "slow.c", Path(folder) / "slow.so"
        source.write_text(_SOURCE, encoding="utf-8")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        slowed = {**os.environ, "LD_PRELOAD": str(library), _LEAST: str(round(seconds * 1e9))}
        return subprocess.run([sys.executable, *sys.argv], env=slowed, check=False).returncode


def syncs_are_slow() -> bool:
    """Whether this process is the one that was run again."""
    return _LEAST in os.environ

"""Windows' process groups: a job object that ends every member when it is ended, or when this process dies.

Imported on Windows alone.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_KILL_ON_CLOSE = 0x2000
_EXTENDED_LIMITS = 9
_ACCOUNTING = 1
_SET_QUOTA_AND_TERMINATE = 0x0101


class _BasicLimits(ctypes.Structure):
    _fields_ = [
        ("per_process_time", ctypes.c_int64),
        ("per_job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("minimum_working_set", ctypes.c_size_t),
        ("maximum_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    ]


class _Limits(ctypes.Structure):
    _fields_ = [
        ("basic", _BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    ]


class _Accounting(ctypes.Structure):
    _fields_ = [
        ("times", ctypes.c_int64 * 4),
        ("page_faults", ctypes.c_uint32),
        ("total", ctypes.c_uint32),
        ("active", ctypes.c_uint32),
        ("terminated", ctypes.c_uint32),
    ]


def _kernel() -> Any:
    assert sys.platform == "win32"
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    kernel.OpenProcess.restype = ctypes.c_void_p
    return kernel


class JobObject:
    """The job of the child `pid`. What the child started before it was put into the job stays outside."""

    def __init__(self, pid: int) -> None:
        self._kernel = _kernel()
        self._job = ctypes.c_void_p(self._kernel.CreateJobObjectW(None, None))
        limits = _Limits()
        limits.basic.flags = _KILL_ON_CLOSE
        self._kernel.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        process = ctypes.c_void_p(self._kernel.OpenProcess(_SET_QUOTA_AND_TERMINATE, False, pid))
        self._kernel.AssignProcessToJobObject(self._job, process)
        self._kernel.CloseHandle(process)

    def alive(self) -> bool:
        accounting = _Accounting()
        self._kernel.QueryInformationJobObject(
            self._job, _ACCOUNTING, ctypes.byref(accounting), ctypes.sizeof(accounting), None
        )
        return accounting.active > 0

    def trace(self) -> None:
        """Nothing to do: nobody leaves a job."""

    def terminate(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._kernel.TerminateJobObject(self._job, 1)

    def close(self) -> None:
        self._kernel.CloseHandle(self._job)
        self._job = ctypes.c_void_p(None)

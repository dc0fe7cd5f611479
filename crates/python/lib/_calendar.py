"""Dates of the program's clock, for the module `time`."""

import time as _time
from collections import namedtuple as _namedtuple

struct_time = _namedtuple("struct_time", "tm_year tm_mon tm_mday tm_hour tm_min tm_sec tm_wday tm_yday tm_isdst")
_plain = struct_time
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


class struct_time(_plain):
    def __new__(cls, values):
        return _plain.__new__(cls, *values)


def gmtime(seconds=None):
    seconds = int(_time.time() if seconds is None else seconds // 1)
    days, rest = divmod(seconds, 86400)
    # Years begin in March here, so that the leap day is the last.
    shifted = days + 719468
    era, day_of_era = divmod(shifted, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    before = sum((31, 28 + is_leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[: month - 1])
    return struct_time((year, month, day, rest // 3600, rest // 60 % 60, rest % 60, (days + 3) % 7, before + day, 0))


localtime = gmtime


def strftime(format, moment=None):
    t = gmtime() if moment is None else moment if isinstance(moment, struct_time) else struct_time(tuple(moment))
    texts = {
        "Y": f"{t.tm_year:04d}",
        "y": f"{t.tm_year % 100:02d}",
        "m": f"{t.tm_mon:02d}",
        "d": f"{t.tm_mday:02d}",
        "H": f"{t.tm_hour:02d}",
        "I": f"{(t.tm_hour - 1) % 12 + 1:02d}",
        "M": f"{t.tm_min:02d}",
        "S": f"{t.tm_sec:02d}",
        "p": "AM" if t.tm_hour < 12 else "PM",
        "j": f"{t.tm_yday:03d}",
        "a": _DAYS[t.tm_wday][:3],
        "A": _DAYS[t.tm_wday],
        "b": _MONTHS[t.tm_mon - 1][:3],
        "B": _MONTHS[t.tm_mon - 1],
        "Z": "UTC",
        "z": "+0000",
        "%": "%",
        "e": f"{t.tm_mday:2d}",
        "w": str((t.tm_wday + 1) % 7),
    }
    texts["F"], texts["T"] = f"{texts['Y']}-{texts['m']}-{texts['d']}", f"{texts['H']}:{texts['M']}:{texts['S']}"
    texts["c"] = f"{texts['a']} {texts['b']} {texts['e']} {texts['T']} {texts['Y']}"
    texts["x"], texts["X"], texts["D"] = (
        f"{texts['m']}/{texts['d']}/{texts['y']}",
        texts["T"],
        f"{texts['m']}/{texts['d']}/{texts['y']}",
    )
    parts, at = [], 0
    while at < len(format):
        if format[at] == "%" and at + 1 < len(format):
            parts.append(texts.get(format[at + 1], format[at : at + 2]))
            at += 2
        else:
            parts.append(format[at])
            at += 1
    return "".join(parts)


def asctime(moment=None):
    return strftime("%c", moment)


def ctime(seconds=None):
    return strftime("%c", gmtime(seconds))


def mktime(moment):
    from datetime import datetime

    return datetime(*tuple(moment)[:6]).timestamp()

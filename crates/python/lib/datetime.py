"""Dates and times of the program's clock."""

import time as _time

MINYEAR, MAXYEAR = 1, 9999


class timedelta:
    __slots__ = ("_micros",)

    def __init__(self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        seconds = seconds + 60 * minutes + 3600 * hours + 86400 * (days + 7 * weeks)
        self._micros = round(seconds * 1_000_000 + microseconds + milliseconds * 1000)

    @classmethod
    def _of(cls, micros):
        made = cls()
        made._micros = round(micros)
        return made

    days = property(lambda self: self._micros // 86_400_000_000)
    seconds = property(lambda self: self._micros // 1_000_000 % 86400)
    microseconds = property(lambda self: self._micros % 1_000_000)

    def total_seconds(self):
        return self._micros / 1_000_000

    def __add__(self, other):
        return timedelta._of(self._micros + other._micros) if isinstance(other, timedelta) else NotImplemented

    def __sub__(self, other):
        return timedelta._of(self._micros - other._micros)

    def __neg__(self):
        return timedelta._of(-self._micros)

    def __mul__(self, number):
        return timedelta._of(self._micros * number)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self._micros / other._micros if isinstance(other, timedelta) else timedelta._of(self._micros / other)

    def __floordiv__(self, other):
        return self._micros // other._micros if isinstance(other, timedelta) else timedelta._of(self._micros // other)

    def __eq__(self, other):
        return isinstance(other, timedelta) and self._micros == other._micros

    def __lt__(self, other):
        return self._micros < other._micros

    def __le__(self, other):
        return self._micros <= other._micros

    def __gt__(self, other):
        return self._micros > other._micros

    def __ge__(self, other):
        return self._micros >= other._micros

    def __hash__(self):
        return hash(self._micros)

    def __bool__(self):
        return self._micros != 0

    def __str__(self):
        days, seconds = self.days, self.seconds
        text = f"{days} day{'s' if abs(days) != 1 else ''}, " if days else ""
        text += f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        return text + (f".{self.microseconds:06d}" if self.microseconds else "")

    def __repr__(self):
        parts = [
            f"{name}={value}"
            for name, value in (("days", self.days), ("seconds", self.seconds), ("microseconds", self.microseconds))
            if value
        ]
        return f"datetime.timedelta({', '.join(parts) or '0'})"


def _days_before(year, month, day):
    """Days from 1970-01-01, in the calendar of today."""
    year, month = (year - 1, month + 12) if month < 3 else (year, month)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469


class tzinfo:
    pass


class timezone(tzinfo):
    def __init__(self, offset, name=None):
        self._offset = offset

    def __repr__(self):
        return "datetime.timezone.utc"

    def __str__(self):
        return "UTC"


timezone.utc = timezone(timedelta(0))
UTC = timezone.utc


class date:
    def __init__(self, year, month, day):
        self.year, self.month, self.day = year, month, day

    @classmethod
    def today(cls):
        return cls.fromtimestamp(_time.time())

    @classmethod
    def fromtimestamp(cls, seconds, tz=None):
        moment = _time.gmtime(seconds)
        return cls(*moment[:3])

    def _tuple(self):
        days = _days_before(self.year, self.month, self.day)
        return _time.struct_time(
            (
                self.year,
                self.month,
                self.day,
                getattr(self, "hour", 0),
                getattr(self, "minute", 0),
                getattr(self, "second", 0),
                (days + 3) % 7,
                days - _days_before(self.year, 1, 1) + 1,
                -1,
            )
        )

    timetuple = _tuple

    def toordinal(self):
        return _days_before(self.year, self.month, self.day) + 719163

    def weekday(self):
        return (_days_before(self.year, self.month, self.day) + 3) % 7

    def strftime(self, format):
        return _time.strftime(format.replace("%f", f"{getattr(self, 'microsecond', 0):06d}"), self._tuple())

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def isoformat(self):
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"

    def __str__(self):
        return self.isoformat()

    def _key(self):
        return (self.year, self.month, self.day)

    def __eq__(self, other):
        return isinstance(other, date) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __le__(self, other):
        return self._key() <= other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"datetime.{type(self).__name__}({', '.join(map(str, self._key()))})"

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return type(self)._from_micros(self._micros() - other._micros, getattr(self, "tzinfo", None))
        return timedelta._of(self._micros() - other._micros())

    def __add__(self, other):
        return type(self)._from_micros(self._micros() + other._micros, getattr(self, "tzinfo", None))

    def _micros(self):
        return _days_before(self.year, self.month, self.day) * 86_400_000_000

    @classmethod
    def _from_micros(cls, micros, tz=None):
        return cls.fromtimestamp(micros // 1_000_000)


class datetime(date):
    def __init__(self, year, month, day, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        super().__init__(year, month, day)
        self.hour, self.minute, self.second, self.microsecond, self.tzinfo = hour, minute, second, microsecond, tzinfo

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_time.time(), tz)

    today = utcnow = now

    @classmethod
    def fromtimestamp(cls, seconds, tz=None):
        moment = _time.gmtime(seconds)
        return cls(*moment[:6], microsecond=round(seconds % 1 * 1_000_000) % 1_000_000, tzinfo=tz)

    utcfromtimestamp = fromtimestamp

    @classmethod
    def fromisoformat(cls, text):
        day, _, moment = text.replace("T", " ").partition(" ")
        seconds, _, fraction = moment.partition(".")
        return cls(
            *map(int, day.split("-")),
            *(map(int, seconds.split(":")) if seconds else ()),
            **({"microsecond": int(fraction.ljust(6, "0"))} if fraction else {}),
        )

    @classmethod
    def combine(cls, date, time):
        return cls(date.year, date.month, date.day, time.hour, time.minute, time.second, time.microsecond)

    def timestamp(self):
        return self._micros() / 1_000_000

    def date(self):
        return date(self.year, self.month, self.day)

    def time(self):
        return time(self.hour, self.minute, self.second, self.microsecond)

    def replace(self, **changes):
        values = {
            name: getattr(self, name)
            for name in ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
        }
        return datetime(**{**values, **changes})

    def astimezone(self, tz=None):
        return self

    def isoformat(self, sep="T", timespec="auto"):
        text = f"{date.isoformat(self)}{sep}{self.hour:02d}:{self.minute:02d}:{self.second:02d}"
        return (
            text
            + (f".{self.microsecond:06d}" if self.microsecond and timespec != "seconds" else "")
            + ("+00:00" if self.tzinfo else "")
        )

    def __str__(self):
        return self.isoformat(" ")

    def _key(self):
        return (self.year, self.month, self.day, self.hour, self.minute, self.second, self.microsecond)

    def _micros(self):
        return date._micros(self) + ((self.hour * 60 + self.minute) * 60 + self.second) * 1_000_000 + self.microsecond

    @classmethod
    def _from_micros(cls, micros, tz=None):
        moment = _time.gmtime(micros // 1_000_000)
        return cls(*moment[:6], microsecond=micros % 1_000_000, tzinfo=tz)


class time:
    def __init__(self, hour=0, minute=0, second=0, microsecond=0, tzinfo=None):
        self.hour, self.minute, self.second, self.microsecond, self.tzinfo = hour, minute, second, microsecond, tzinfo

    def __str__(self):
        return f"{self.hour:02d}:{self.minute:02d}:{self.second:02d}" + (
            f".{self.microsecond:06d}" if self.microsecond else ""
        )

    isoformat = __str__

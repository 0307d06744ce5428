"""The time at which something stops being valid, as configuration files and the command line give it."""

import datetime
from typing import Self


class Expiry(datetime.datetime):
    """A time in UTC. A date alone means the end of that day in UTC."""

    @classmethod
    def read(cls, given: object) -> Self:
        """The time that a TOML value gives. Raises `ValueError` for anything but a date, or a date-time with an
        offset.
        """
        if isinstance(given, datetime.datetime):
            if given.tzinfo is None:
                raise ValueError(f"Expected a date-time with an offset, such as {given.isoformat()}Z, got one without")
            try:
                utc = given.astimezone(datetime.UTC)
            except OverflowError as error:
                raise ValueError(f"Expected a date-time that UTC can express, got {given.isoformat()}") from error
        elif isinstance(given, datetime.date):
            utc = datetime.datetime.combine(given, datetime.time.max, datetime.UTC)
        else:
            raise ValueError(
                "Expected a date without quotes, such as 2027-01-31, or a date-time with an offset, got "
                f"{type(given).__name__}"
            )
        return cls.combine(utc.date(), utc.timetz())

    def __str__(self) -> str:
        return self.isoformat(timespec="seconds").replace("+00:00", "Z")

    def is_over(self, now_s: float) -> bool:
        """Whether it has passed at `now_s`, in seconds since the epoch."""
        return now_s >= self.timestamp()

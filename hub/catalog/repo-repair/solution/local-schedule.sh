set -eu
cat > planner/clock.py <<'END'
"""Moments and local days. An offset is the number of minutes that local time is ahead of UTC."""

from datetime import datetime, timedelta, timezone


def parse_moment(text):
    """Return an aware datetime for texts such as 2024-03-01T23:30:00Z or 2024-03-01T23:30:00-05:00."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def local_day(moment, offset):
    """Return the date (YYYY-MM-DD) of *moment* for a place with this offset."""
    return moment.astimezone(timezone(timedelta(minutes=offset))).date().isoformat()
END
sed -i 's|in sorted(appointments):|in sorted(appointments, key=lambda item: parse_moment(item[0])):|' planner/agenda.py

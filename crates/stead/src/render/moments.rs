//! Times for people, in the zone of this machine.

use jiff::tz::TimeZone;
use stead_core::id::Timestamp;

/// The time of day, after the day when it is not today.
pub(crate) fn clock(at: Timestamp) -> String {
    let today = jiff::Timestamp::now().as_millisecond();
    let day = |at| formatted(Timestamp(at), "%Y-%m-%d");
    if day(at.0) == day(today) { formatted(at, "%H:%M:%S") } else { moment(at) }
}

/// Day and time.
pub(crate) fn moment(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%d %H:%M:%S")
}

fn formatted(at: Timestamp, format: &str) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(at) => at.to_zoned_datetime(TimeZone::system()).strftime(format).to_string(),
        // A clock so wrong is shown as what it said.
        Err(_) => at.0.to_string(),
    }
}

/// How long something has lasted, as `0:07`, `12:34` or `3:02:01`.
pub(crate) fn lasting(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        assert_eq!(lasting(-5), "0:00");
        assert_eq!(lasting(67_999), "1:07");
        assert_eq!(lasting(10_921_000), "3:02:01");
        assert_eq!(clock(Timestamp(i64::MAX)), i64::MAX.to_string());
    }
}

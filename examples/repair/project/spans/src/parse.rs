//! Reading spans.

use std::fmt;

/// Why a text is not a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanError {
    /// There is nothing.
    Empty,
    /// A unit without a number before it, or one that is unknown.
    Unit(char),
    /// A number without a unit after it.
    NoUnit,
    /// Longer than can be counted in seconds.
    TooLong,
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "there is no span"),
            Self::Unit(unit) => write!(f, "`{unit}` is out of place"),
            Self::NoUnit => write!(f, "a number has no unit: h, m or s"),
            Self::TooLong => write!(f, "that is too long"),
        }
    }
}

impl std::error::Error for SpanError {}

/// The seconds of a span.
pub fn parse(text: &str) -> Result<u64, SpanError> {
    let mut seconds: u64 = 0;
    let mut number: Option<u64> = None;
    for character in text.trim().chars() {
        if let Some(digit) = character.to_digit(10) {
            let tens = number.unwrap_or(0).checked_mul(10).ok_or(SpanError::TooLong)?;
            number = Some(tens.checked_add(u64::from(digit)).ok_or(SpanError::TooLong)?);
            continue;
        }
        let unit = match character {
            'h' => 60,
            'm' => 60,
            's' => 1,
            other => return Err(SpanError::Unit(other)),
        };
        let count = number.take().ok_or(SpanError::Unit(character))?;
        let part = count.checked_mul(unit).ok_or(SpanError::TooLong)?;
        seconds = seconds.checked_add(part).ok_or(SpanError::TooLong)?;
    }
    if text.trim().is_empty() {
        return Err(SpanError::Empty);
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        assert_eq!(parse("90s"), Ok(90));
        assert_eq!(parse("45m"), Ok(2700));
        assert_eq!(parse(" 1h30m5s\n"), Ok(5405));
    }

    #[test]
    fn a_number_needs_its_unit() {
        assert_eq!(parse("90"), Err(SpanError::NoUnit));
        assert_eq!(parse("1h30"), Err(SpanError::NoUnit));
    }

    #[test]
    fn what_is_no_span_is_named() {
        assert_eq!(parse("  "), Err(SpanError::Empty));
        assert_eq!(parse("h"), Err(SpanError::Unit('h')));
        assert_eq!(parse("3 h"), Err(SpanError::Unit(' ')));
        assert_eq!(parse("99999999999999999999h"), Err(SpanError::TooLong));
    }
}

//! Medians and ratios.

use std::time::{Duration, Instant};

/// The middle of `values`; of an even count, the mean of the two in the middle. None of none.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(*upper);
    }
    let lower = sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    Some(f64::midpoint(*lower, *upper))
}

/// The median, or an error that says what was not measured.
pub(super) fn middle(what: &str, values: &[f64]) -> Result<f64, String> {
    median(values).ok_or_else(|| format!("{what} was not measured"))
}

/// The median of the ratios of what was measured in the same round.
pub(super) fn ratio(what: &str, over: &[f64], under: &[f64]) -> Result<f64, String> {
    let ratios: Vec<f64> = over
        .iter()
        .zip(under)
        .filter(|(_, under)| **under > 0.0)
        .map(|(over, under)| over / under)
        .collect();
    middle(what, &ratios)
}

/// A count as a number to calculate with.
pub(super) fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

/// How many microseconds `act` takes, and what it gives.
pub(super) fn timed<T, E>(act: impl FnOnce() -> Result<T, E>) -> Result<(f64, T), E> {
    let began = Instant::now();
    let done = act()?;
    Ok((micros(began.elapsed()), done))
}

/// A duration in microseconds.
pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Microseconds for people.
pub(super) fn shown(micros: f64) -> String {
    if micros < 10_000.0 {
        format!("{micros:.0} µs")
    } else if micros < 10_000_000.0 {
        format!("{:.1} ms", micros / 1000.0)
    } else {
        format!("{:.1} s", micros / 1e6)
    }
}

/// A rate for people.
pub(super) fn per_second(rate: f64) -> String {
    let digits = format!("{rate:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + " a second"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        // The load of the second round weighs on both sides.
        assert_eq!(ratio("a", &[2.0, 20.0, 4.0], &[1.0, 10.0, 2.0]), Ok(2.0));
        assert_eq!(ratio("a", &[2.0, 3.0], &[0.0, 1.0]), Ok(3.0));
        assert!(ratio("a", &[], &[]).unwrap_err().contains("a was not measured"));
    }

    #[test]
    fn figures_are_for_people() {
        assert_eq!(shown(812.4), "812 µs");
        assert_eq!(shown(12_345.0), "12.3 ms");
        assert_eq!(shown(174_000_000.0), "174.0 s");
        assert_eq!(per_second(12_345.6), "12,346 a second");
        assert_eq!(per_second(999.0), "999 a second");
        assert!((number(3) - 3.0).abs() < f64::EPSILON);
    }
}

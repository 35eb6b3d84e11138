//! Writing spans.

use std::fmt::Write as _;

/// A span as people write it, without the parts that are zero.
pub fn show(seconds: u64) -> String {
    let parts = [(seconds / 3600, 'h'), (seconds / 60, 'm'), (seconds % 60, 's')];
    let mut text = String::new();
    for (count, unit) in parts {
        if count > 0 {
            let _ = write!(text, "{count}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::show;
    use crate::parse;

    #[test]
    fn zero_parts_are_left_out() {
        assert_eq!(show(0), "0s");
        assert_eq!(show(60), "1m");
        assert_eq!(show(3605), "1h5s");
    }

    #[test]
    fn what_is_shown_reads_back() {
        for seconds in [1, 59, 60, 61, 3599, 3600, 3661, 86_400, 359_999] {
            assert_eq!(parse(&show(seconds)), Ok(seconds), "{seconds}");
        }
    }
}

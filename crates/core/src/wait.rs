//! How long `wait_agent` waits.

/// The shortest wait, in milliseconds.
pub const SHORTEST_MS: u64 = 10_000;
/// The longest wait, in milliseconds.
pub const LONGEST_MS: u64 = 3_600_000;
/// The wait of a call that names none, in milliseconds.
pub const DEFAULT_MS: u64 = 30_000;

/// The wait that is used for what a call asked: clamped, never refused (A6).
pub fn clamp(asked_ms: Option<u64>) -> u64 {
    asked_ms.unwrap_or(DEFAULT_MS).clamp(SHORTEST_MS, LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_38_waits_are_clamped() {
        assert_eq!(clamp(None), 30_000);
        assert_eq!(clamp(Some(1)), 10_000);
        assert_eq!(clamp(Some(u64::MAX)), 3_600_000);
    }
}

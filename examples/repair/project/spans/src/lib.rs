//! Spans of time as people write them: `1h30m`, `45m`, `90s`.

mod parse;
mod show;

pub use parse::{SpanError, parse};
pub use show::show;

//! Rust source as far as the checks need it: its tokens, without comments and without the insides
//! of literals, so that a word in a comment or a fixture is never taken for code.
//!
//! This is a scanner, not a parser: it knows attributes, bodies and `use` trees, nothing else.

mod scan;
mod tests_in;
mod uses;

pub(crate) use scan::{Token, scan};
pub(crate) use tests_in::{TestLines, attribute_at, test_lines};
pub(crate) use uses::paths;

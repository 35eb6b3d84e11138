//! What of its parent's conversation a new agent is given (A6: `context`).

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is copied once, at the spawn, from the parent's conversation as its model sees it then,
/// without the call that spawns; it is never synchronised later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Context {
    /// Nothing.
    #[default]
    None,
    /// All of it.
    All,
    /// A summary, made when the assignment is accepted.
    Summary,
    /// Its last turns, this many.
    Turns(NonZeroU32),
}

/// A text that is no context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a context: `none`, `all`, `summary`, or how many turns, such as `3`")]
pub struct NoContext(String);

impl FromStr for Context {
    type Err = NoContext;

    /// Exactly these words, or a positive decimal number without sign or leading zero.
    fn from_str(text: &str) -> Result<Self, NoContext> {
        let refuse = || NoContext(crate::line::cut(text, 80));
        Ok(match text {
            "none" => Self::None,
            "all" => Self::All,
            "summary" => Self::Summary,
            _ if text.starts_with(|c: char| matches!(c, '1'..='9')) => {
                Self::Turns(text.parse().map_err(|_| refuse())?)
            }
            _ => return Err(refuse()),
        })
    }
}

impl TryFrom<String> for Context {
    type Error = NoContext;
    fn try_from(text: String) -> Result<Self, NoContext> {
        text.parse()
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Summary => f.write_str("summary"),
            Self::Turns(count) => count.fmt(f),
        }
    }
}

impl From<Context> for String {
    fn from(context: Context) -> String {
        context.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agents_20_only_the_words_and_plain_numbers_are_contexts() {
        for bad in ["0", "-1", "+1", "03", "3.5", "ALL", "", " 3", "3 ", "4294967296", "٣"] {
            assert!(bad.parse::<Context>().is_err(), "{bad:?}");
        }
        assert_eq!("3".parse(), Ok(Context::Turns(NonZeroU32::new(3).unwrap())));
    }

    proptest! {
        #[test]
        fn a_context_has_one_spelling(text in "none|all|summary|[0-9]{1,12}|.{0,4}") {
            if let Ok(context) = text.parse::<Context>() {
                prop_assert_eq!(context.to_string(), text);
            }
        }
    }
}

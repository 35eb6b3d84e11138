//! A case as `docs/cases.toml` lists it.

use serde::Deserialize;

/// One `[[case]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The specification and the number in it.
    pub(crate) id: String,
    /// The case in a line.
    pub(crate) says: String,
    rule: Option<String>,
    cannot: Option<String>,
    later: Option<String>,
}

/// What became of a case, other than a test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate<'a> {
    /// Decided otherwise, by this rule.
    Rule(&'a str),
    /// Cannot happen, because of this.
    Cannot(&'a str),
    /// Owed by the issue of this title.
    Later(&'a str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "case")]
    cases: Vec<Case>,
}

/// Reads the file.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, toml::de::Error> {
    toml::from_str::<File>(text).map(|file| file.cases)
}

impl Case {
    /// The one fate, none, or why what is written is not one.
    pub(crate) fn fate(&self) -> Result<Option<Fate<'_>>, &'static str> {
        let given = [
            self.rule.as_deref().map(Fate::Rule),
            self.cannot.as_deref().map(Fate::Cannot),
            self.later.as_deref().map(Fate::Later),
        ];
        let mut given = given.into_iter().flatten();
        let fate = given.next();
        if given.next().is_some() {
            return Err("at most one of `rule`, `cannot` and `later`");
        }
        if self.says.trim().is_empty() {
            return Err("`says` is empty");
        }
        match fate {
            Some(Fate::Rule(text) | Fate::Cannot(text) | Fate::Later(text))
                if text.trim().is_empty() =>
            {
                Err("`rule`, `cannot` and `later` say something or are left out")
            }
            fate => Ok(fate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_field_is_refused() {
        assert!(parse("[[case]]\nid = \"agents_1\"\nsays = \"s\"\nlatre = \"x\"\n").is_err());
        assert!(parse("[[case]]\nid = \"agents_1\"\n").is_err());
    }

    #[test]
    fn empty_words_are_no_fate() {
        for lines in ["says = \"\"\nrule = \"r\"", "says = \"s\"\nlater = \" \""] {
            let cases = parse(&format!("[[case]]\nid = \"agents_1\"\n{lines}\n")).unwrap();
            assert!(cases[0].fate().is_err(), "{lines}");
        }
    }
}

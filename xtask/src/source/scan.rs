//! Tokens.

use std::str::Chars;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword; a raw one without its `r#`.
    Word,
    /// One punctuation character, or `::`.
    Mark,
    /// A string, with its inside as the text; other literals too.
    Literal,
}

/// A piece of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its text.
    pub(crate) text: String,
    /// The line it starts on, from 1.
    pub(crate) line: usize,
}

impl Token {
    /// Whether this is the mark `text`.
    pub(crate) fn is_mark(&self, text: &str) -> bool {
        self.kind == Kind::Mark && self.text == text
    }

    /// Whether this is the word `text`.
    pub(crate) fn is_word(&self, text: &str) -> bool {
        self.kind == Kind::Word && self.text == text
    }
}

struct Scanner<'a> {
    rest: Chars<'a>,
    line: usize,
    tokens: Vec<Token>,
}

/// The tokens of a file. Source that does not compile gives some tokens too, never a failure.
pub(crate) fn scan(text: &str) -> Vec<Token> {
    let mut scanner = Scanner { rest: text.chars(), line: 1, tokens: Vec::new() };
    scanner.all();
    scanner.tokens
}

impl Scanner<'_> {
    fn ahead(&self, distance: usize) -> Option<char> {
        self.rest.clone().nth(distance)
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    fn push(&mut self, kind: Kind, text: impl Into<String>, line: usize) {
        self.tokens.push(Token { kind, text: text.into(), line });
    }

    fn all(&mut self) {
        while let Some(next) = self.ahead(0) {
            let line = self.line;
            match (next, self.ahead(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('\'', _) => self.quote(),
                (':', Some(':')) => {
                    self.skip(2);
                    self.push(Kind::Mark, "::", line);
                }
                _ if next.is_whitespace() => self.skip(1),
                _ if next.is_ascii_digit() => {
                    let text = self.word();
                    self.push(Kind::Literal, text, line);
                }
                _ if is_word(next) => self.word_or_prefix(),
                _ => {
                    self.skip(1);
                    self.push(Kind::Mark, next, line);
                }
            }
        }
    }

    fn line_comment(&mut self) {
        while self.ahead(0).is_some_and(|next| next != '\n') {
            self.take();
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        self.skip(2);
        let mut depth = 1_usize;
        while depth > 0 {
            match (self.ahead(0), self.ahead(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.skip(2);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.skip(2);
                }
                (Some(_), _) => self.skip(1),
                (None, _) => return,
            }
        }
    }

    fn string(&mut self) {
        let line = self.line;
        self.skip(1);
        let mut inside = String::new();
        while let Some(next) = self.take() {
            match next {
                '"' => break,
                '\\' => inside.extend(self.take()),
                _ => inside.push(next),
            }
        }
        self.push(Kind::Literal, inside, line);
    }

    /// `r"…"`, `r#"…"#` and their byte and C kin; stands on the first `#` or quote.
    fn raw_string(&mut self) {
        let line = self.line;
        let mut hashes = 0;
        while self.ahead(0) == Some('#') {
            hashes += 1;
            self.skip(1);
        }
        self.skip(1);
        let mut inside = String::new();
        while let Some(next) = self.take() {
            if next == '"' && (0..hashes).all(|at| self.ahead(at) == Some('#')) {
                self.skip(hashes);
                break;
            }
            inside.push(next);
        }
        self.push(Kind::Literal, inside, line);
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        let line = self.line;
        self.skip(1);
        if self.ahead(0) == Some('\\') {
            self.skip(2);
            while self.take().is_some_and(|next| next != '\'') {}
            self.push(Kind::Literal, "", line);
        } else if self.ahead(1) == Some('\'') {
            self.skip(2);
            self.push(Kind::Literal, "", line);
        } else {
            self.word();
            self.push(Kind::Mark, "'", line);
        }
    }

    fn word(&mut self) -> String {
        let mut text = String::new();
        while let Some(next) = self.ahead(0).filter(|next| is_word(*next)) {
            self.take();
            text.push(next);
        }
        text
    }

    fn word_or_prefix(&mut self) {
        let line = self.line;
        let text = self.word();
        let raw = matches!(text.as_str(), "r" | "br" | "cr");
        match (self.ahead(0), self.ahead(1)) {
            (Some('"'), _) | (Some('#'), Some('"' | '#')) if raw => self.raw_string(),
            (Some('#'), Some(next)) if text == "r" && is_word(next) => {
                self.skip(1);
                let name = self.word();
                self.push(Kind::Word, name, line);
            }
            (Some('"'), _) if matches!(text.as_str(), "b" | "c") => self.string(),
            (Some('\''), _) if text == "b" => self.quote(),
            _ => self.push(Kind::Word, text, line),
        }
    }
}

fn is_word(next: char) -> bool {
    next == '_' || next.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        scan(text)
            .into_iter()
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text)
            .collect()
    }

    #[test]
    fn comments_and_literals_hold_no_words() {
        let text = r##"
            // a line
            /* b /* nested */ still */
            /// doc
            let s = "in \" side"; let r = r#"raw " side"#; let b = br"x"; let c = 'c';
            let q = '\''; let z = b'\\'; fn after<'life>() {}
        "##;
        let expected = "let s let r let b let c let q let z fn after";
        assert_eq!(words(text).join(" "), expected);
    }

    #[test]
    fn raw_identifiers_lose_their_prefix() {
        assert_eq!(words("r#type r"), ["type", "r"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let tokens = scan("/*\n*/ \"\n\" here");
        let last = tokens.last().unwrap();
        assert_eq!((last.text.as_str(), last.line), ("here", 3));
    }

    #[test]
    fn an_unclosed_string_ends_with_the_file() {
        assert_eq!(scan("\"open").len(), 1);
    }
}

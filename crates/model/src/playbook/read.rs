//! Reads fields of a TOML text and says in which line something is wrong.

use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{PlaybookError, listed, nearest};

pub(super) type Read<T> = Result<T, PlaybookError>;
pub(super) type Node<'a> = Spanned<DeValue<'a>>;

/// A sort of table: what people call it, and the keys it may have.
pub(super) struct Kind {
    pub(super) what: &'static str,
    pub(super) keys: &'static [&'static str],
}

/// One table of the text. Every key of it is known.
pub(super) struct Fields<'a> {
    text: &'a str,
    table: &'a DeTable<'a>,
    /// Where in the text it begins.
    at: usize,
    /// Where in the script, for people.
    pub(super) place: String,
}

/// The line of a byte, counted from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

impl<'a> Fields<'a> {
    /// The whole file.
    pub(super) fn of_file(text: &'a str, table: &'a DeTable<'a>, kind: &Kind) -> Read<Self> {
        Self { text, table, at: 0, place: String::new() }.known(kind)
    }

    /// The value of `key` in this table, which must be a table itself and is called `place`.
    pub(super) fn table(
        &self,
        key: &str,
        node: &'a Node<'a>,
        place: String,
        kind: &Kind,
    ) -> Read<Self> {
        let at = node.span().start;
        let DeValue::Table(table) = node.get_ref() else {
            let line = line_of(self.text, at);
            let hint = format!("{} has {}", kind.what, listed(kind.keys));
            return Err(PlaybookError { line, ..self.mistyped(key, "a table", node, &hint) });
        };
        Self { text: self.text, table, at, place }.known(kind)
    }

    /// The line in which it begins.
    pub(super) fn line(&self) -> usize {
        line_of(self.text, self.at)
    }

    fn known(self, kind: &Kind) -> Read<Self> {
        let unknown = self.table.keys().filter(|key| !kind.keys.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(self);
        };
        let name: &str = key.get_ref();
        let may = format!("{} may have {}", kind.what, listed(kind.keys));
        let hint = match nearest(name, kind.keys.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? ({may})"),
            None => may,
        };
        Err(self.error_at(name, format!("unknown key `{name}`"), hint))
    }

    /// An error about the whole table.
    pub(super) fn error(
        &self,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> PlaybookError {
        PlaybookError {
            line: self.line(),
            place: self.place.clone(),
            problem: problem.into(),
            hint: hint.into(),
        }
    }

    /// An error about one of its fields.
    pub(super) fn error_at(
        &self,
        key: &str,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) -> PlaybookError {
        let found = self.table.keys().find(|name| name.get_ref() == key);
        let line = line_of(self.text, found.map_or(self.at, |name| name.span().start));
        PlaybookError { line, ..self.error(problem, hint) }
    }

    fn mistyped(&self, key: &str, wanted: &str, node: &Node<'_>, hint: &str) -> PlaybookError {
        let is = match node.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error_at(key, format!("`{key}` must be {wanted}, not {is}"), hint)
    }

    /// The field as it stands there.
    pub(super) fn node(&self, key: &str) -> Option<&'a Node<'a>> {
        self.table.get(key)
    }

    /// Which of these fields are there.
    pub(super) fn present(&self, keys: &[&'static str]) -> Vec<&'static str> {
        keys.iter().copied().filter(|key| self.table.contains_key(*key)).collect()
    }

    /// A text with something in it.
    pub(super) fn text(&self, key: &str) -> Read<Option<String>> {
        self.node(key).map(|node| self.text_in(key, node)).transpose()
    }

    /// A text with something in it, found inside the field.
    pub(super) fn text_in(&self, key: &str, node: &Node<'_>) -> Read<String> {
        match node.get_ref() {
            DeValue::String(text) if text.is_empty() => Err(self.error_at(
                key,
                format!("`{key}` is empty"),
                format!("write a text, or leave `{key}` out"),
            )),
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.mistyped(key, "a text", node, "put it between quotes")),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &str) -> Read<Option<bool>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        match node.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            _ => Err(self.mistyped(key, "true or false", node, "write it without quotes")),
        }
    }

    /// A whole number from 1 to `most`.
    pub(super) fn number(&self, key: &str, most: u32) -> Read<Option<u32>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let hint = format!("write a whole number from 1 to {most}, without quotes");
        let DeValue::Integer(number) = node.get_ref() else {
            return Err(self.mistyped(key, "a whole number", node, &hint));
        };
        match u32::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.error_at(key, format!("`{key}` is out of range"), hint)),
        }
    }

    /// A whole number from 0 on.
    pub(super) fn count(&self, key: &str) -> Read<Option<u64>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let hint = "write a whole number from 0 on, without quotes";
        let DeValue::Integer(number) = node.get_ref() else {
            return Err(self.mistyped(key, "a whole number", node, hint));
        };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.error_at(key, format!("`{key}` is out of range"), hint)),
        }
    }

    /// A list with something in it.
    pub(super) fn list(&self, key: &str, hint: &str) -> Read<Vec<&'a Node<'a>>> {
        match self.node(key).map(|node| (node, node.get_ref())) {
            None => Err(self.error(format!("`{key}` is missing"), hint)),
            Some((_, DeValue::Array(list))) if list.is_empty() => {
                Err(self.error_at(key, format!("`{key}` is empty"), hint))
            }
            Some((_, DeValue::Array(list))) => Ok(list.iter().collect()),
            Some((node, _)) => Err(self.mistyped(key, "a list", node, hint)),
        }
    }

    /// A table of any content, as JSON.
    pub(super) fn object(&self, key: &str) -> Read<Value> {
        let Some(node) = self.node(key) else { return Ok(Value::Object(serde_json::Map::new())) };
        match node.get_ref() {
            DeValue::Table(_) => self.json(key, node),
            _ => Err(self.mistyped(
                key,
                "a table",
                node,
                "write the tool's arguments, such as { command = \"true\" }",
            )),
        }
    }

    fn json(&self, key: &str, node: &Node<'_>) -> Read<Value> {
        let number = |number: Option<Number>| {
            let line = line_of(self.text, node.span().start);
            number.map(Value::Number).ok_or_else(|| PlaybookError {
                line,
                ..self.error(
                    format!("a number in `{key}` cannot be given to a tool"),
                    "write a number that JSON has: finite, whole ones below 2^63",
                )
            })
        };
        Ok(match node.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(moment) => Value::String(moment.to_string()),
            DeValue::Integer(whole) => {
                number(i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(Number::from))?
            }
            DeValue::Float(float) => {
                number(float.as_str().parse().ok().and_then(Number::from_f64))?
            }
            DeValue::Array(list) => {
                Value::Array(list.iter().map(|item| self.json(key, item)).collect::<Read<_>>()?)
            }
            DeValue::Table(table) => Value::Object(
                table
                    .iter()
                    .map(|(name, item)| {
                        Ok((name.get_ref().clone().into_owned(), self.json(key, item)?))
                    })
                    .collect::<Read<_>>()?,
            ),
        })
    }
}

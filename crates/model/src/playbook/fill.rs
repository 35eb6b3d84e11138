//! Placeholders in texts: `{{name}}`.

use serde_json::Value;

/// A piece of a text with placeholders.
enum Piece<'a> {
    Literal(&'a str),
    Name(&'a str),
}

/// Whether this may name a result, a label or a placeholder.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-'))
}

/// Splits a text. Braces around anything but a name are literal.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut literal = text;
    // The place in `literal` from which a placeholder may still begin.
    let mut from = 0;
    while let Some(open) = literal.get(from..).and_then(|rest| rest.find("{{")) {
        let open = from + open;
        let placeholder = literal
            .get(open + 2..)
            .and_then(|rest| rest.split_once("}}"))
            .filter(|(name, _)| is_name(name));
        match (placeholder, literal.get(..open)) {
            (Some((name, rest)), Some(before)) => {
                found.push(Piece::Literal(before));
                found.push(Piece::Name(name));
                literal = rest;
                from = 0;
            }
            // One brace on: in `{{{name}}}` the placeholder begins at the second.
            _ => from = open + 1,
        }
    }
    found.push(Piece::Literal(literal));
    found
}

/// The names of the placeholders in a text.
pub(super) fn names(text: &str) -> Vec<&str> {
    pieces(text)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Name(name) => Some(name),
            Piece::Literal(_) => None,
        })
        .collect()
}

/// The text with its placeholders replaced; what replaces them is not looked at again.
pub(super) fn fill(text: &str, value: &impl Fn(&str) -> String) -> String {
    if !text.contains("{{") {
        return text.to_owned();
    }
    pieces(text)
        .into_iter()
        .map(|piece| match piece {
            Piece::Name(name) => value(name),
            Piece::Literal(literal) => literal.to_owned(),
        })
        .collect()
}

/// The same for every text inside a value; keys stay as they are.
pub(super) fn fill_value(value: &Value, of: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, of)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, of)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, item)| (key.clone(), fill_value(item, of))).collect()
        }
        other => other.clone(),
    }
}

/// Calls `see` with every text inside a value.
pub(super) fn each_text<'a>(value: &'a Value, see: &mut impl FnMut(&'a str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Value::Object(fields) => fields.values().for_each(|item| each_text(item, see)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_between_two_braces_are_replaced() {
        let value = |name: &str| format!("<{name}>");
        for (text, filled) in [
            ("a {{b}} c", "a <b> c"),
            ("{{a}}{{b-2}}", "<a><b-2>"),
            ("{{{a}}}", "{<a>}"),
            ("{{ a }} {{A}} {{}} {{a", "{{ a }} {{A}} {{}} {{a"),
            ("{{{{a}}}}", "{{<a>}}"),
            ("{{é {{a}}", "{{é <a>"),
            ("", ""),
        ] {
            assert_eq!(fill(text, &value), filled, "{text:?}");
        }
        // What came in is not a placeholder.
        assert_eq!(fill("{{a}}", &|_| "{{b}}".to_owned()), "{{b}}");
    }
}

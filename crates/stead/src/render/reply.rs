//! What an agent said and what its calls came to, out of the JSON that goes with an event.
//!
//! The engine cuts long texts, so the JSON may end anywhere: it is read as far as it goes.

use serde_json::Value;

use crate::clean;

/// The arguments that tell best what a call is about, the most telling first.
const TELLING: [&str; 7] = ["command", "path", "task_name", "target", "pattern", "shell", "text"];

/// What was said, without the calls.
pub(crate) fn said(stored: &str) -> String {
    let reply = mended(stored);
    reply.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The calls of a message: id, tool, and what it is about.
pub(crate) fn calls(stored: &str) -> Vec<(String, String, String)> {
    let reply = mended(stored);
    let calls = reply.get("calls").and_then(Value::as_array).cloned().unwrap_or_default();
    calls
        .iter()
        .filter_map(|call| {
            let tool = call.get("tool")?.as_str()?.to_owned();
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            Some((id, tool, about(call.get("arguments").unwrap_or(&Value::Null))))
        })
        .collect()
}

fn about(arguments: &Value) -> String {
    if let Some(tasks) = arguments.get("tasks").and_then(Value::as_array) {
        return super::counted(tasks.len(), "task", "tasks");
    }
    let telling = TELLING.iter().find_map(|name| match arguments.get(name)? {
        Value::String(text) => Some(clean::line(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    telling.unwrap_or_default()
}

/// The text of a call's result, and whether the call failed.
pub(crate) fn tool_result(stored: &str) -> (String, bool) {
    let result = mended(stored);
    let text = result.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
    (text, result.get("failed").and_then(Value::as_bool).unwrap_or(false))
}

/// Reads JSON that may have been cut: open strings, lists and objects are closed, and what was
/// half said is left out.
fn mended(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    // Where the text could end, from the longest: after each character of a string, and after each
    // value. A cut text is at most a few kilobytes and its last string is nearly always where it
    // was cut, so few are tried.
    let mut open = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    let mut ends: Vec<(usize, Vec<char>)> = Vec::new();
    for (at, character) in text.char_indices() {
        let after = at + character.len_utf8();
        if in_string {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            if !escaped {
                ends.push((after, open.clone()));
                if in_string && let Some((_, closing)) = ends.last_mut() {
                    closing.push('"');
                }
            }
            continue;
        }
        match character {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                open.pop();
                ends.push((after, open.clone()));
            }
            _ => {}
        }
    }
    for (end, closing) in ends.into_iter().rev().take(256) {
        let Some(kept) = text.get(..end) else { continue };
        let whole: String = kept.chars().chain(closing.into_iter().rev()).collect();
        if let Ok(value) = serde_json::from_str(&whole) {
            return value;
        }
    }
    Value::Null
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_message_is_read_as_far_as_it_goes() {
        let whole = r#"{"text":"I \"see\" é.\nDone","calls":[{"id":"c1","tool":"bash","arguments":{"command":"cargo test"}},{"id":"c2","tool":"agent","arguments":{"task_name":"fix"}}]}"#;
        assert_eq!(said(whole), "I \"see\" é.\nDone");
        assert_eq!(calls(whole).len(), 2);
        for end in 1..whole.len() {
            let Some(cut) = whole.get(..end) else { continue };
            assert!(said(whole).starts_with(&said(cut)), "{cut}");
            assert!(calls(cut).len() <= 2);
        }
        assert_eq!(said(whole.get(..19).unwrap()), "I \"see\" ");
        let call = &calls(whole.get(..100).unwrap())[0];
        assert_eq!((call.1.as_str(), call.2.as_str()), ("bash", "cargo test"));
    }

    #[test]
    fn results_tell_whether_they_failed() {
        assert_eq!(tool_result(r#"{"id":"c","text":"ok"}"#), ("ok".to_owned(), false));
        assert_eq!(tool_result(r#"{"id":"c","text":"no","failed":true}"#), ("no".to_owned(), true));
        assert_eq!(tool_result("never json"), (String::new(), false));
    }
}

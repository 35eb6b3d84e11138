//! What a call is about, in a few words.

use serde_json::Value;

use crate::clean;

/// The arguments that tell best what a call is about, the most telling first.
const TELLING: [&str; 7] = ["command", "path", "task_name", "target", "pattern", "shell", "text"];

/// What a call with these arguments is about; nothing where no argument tells it.
pub(crate) fn about(arguments: &Value) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_telling_argument_counts() {
        assert_eq!(about(&json!({ "timeout_ms": 1, "command": "make\ntest" })), "make test");
        assert_eq!(about(&json!({ "tasks": [{}, {}] })), "2 tasks");
        assert_eq!(about(&json!({ "shell": 3 })), "3");
        assert_eq!(about(&json!([])), "");
    }
}

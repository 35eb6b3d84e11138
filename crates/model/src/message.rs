//! The messages of a conversation, as they are stored and as a model sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stead_core::event::MailKind;
use stead_core::id::CallId;
use stead_core::path::AgentPath;
use stead_core::usage::Usage;

/// One message of a conversation, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Message {
    /// What the agent heard: its assignment, mail, a person's words.
    User {
        /// The sender as text for the model: a path, `person` or `stead`.
        from: String,
        /// What sort of mail it was; the assignment of a spawn is of sort `MAIL`.
        sort: MailKind,
        /// The text.
        text: String,
        /// Whether this message opened a turn (the first message heard in it).
        opens_turn: bool,
    },
    /// What the agent said.
    Assistant(Reply),
    /// What a call of it came to.
    Tool(ToolResult),
}

/// What a model says: text, calls of tools, or both. Without a call the turn is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; empty when it only calls tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls, run in this order, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// What it used, where that is known. Unknown is not nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, unique within the conversation.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments, an object.
    pub arguments: Value,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Which call.
    pub id: CallId,
    /// Plain text for the model.
    pub text: String,
    /// The same as data, where there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the call was refused or failed.
    #[serde(default)]
    pub failed: bool,
}

/// One tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its arguments; forbids unknown fields.
    pub schema: Value,
}

/// What a reply is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The next message of a turn.
    #[default]
    Turn,
    /// A summary of the conversation, which will stand for it from then on. No tool is on offer, and
    /// the text of the reply is the summary.
    Summary,
}

/// What the loop asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who asks.
    pub agent: AgentPath,
    /// What for.
    pub purpose: Purpose,
    /// How many turns stood before the conversation's first message: a summary stands for them.
    pub earlier_turns: u32,
    /// The instructions.
    pub instructions: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn read<T: DeserializeOwned>(stored: Value) -> Result<T, serde_json::Error> {
        serde_json::from_value(stored)
    }

    fn call() -> ToolCall {
        let id = CallId::parse("t1-s1-1").unwrap();
        ToolCall { id, tool: "bash".to_owned(), arguments: json!({ "command": "true" }) }
    }

    /// What is stored today; a change here needs a new version of the events that hold it.
    #[test]
    fn the_stored_form_stays() {
        let reply = Reply { text: "a".to_owned(), calls: vec![call()], usage: None };
        let said = Message::Assistant(reply.clone());
        assert_snapshot!(serde_json::to_string(&said).unwrap(), @r#"
        {"role":"assistant","text":"a","calls":[{"id":"t1-s1-1","tool":"bash","arguments":{"command":"true"}}]}
        "#);
        let tokens = Usage { input: 7, output: 3, cost_micros: None };
        let known = Reply { calls: Vec::new(), usage: Some(tokens), ..reply.clone() };
        assert_snapshot!(serde_json::to_string(&known).unwrap(), @r#"
        {"text":"a","usage":{"input":7,"output":3}}
        "#);
        let cost = Usage { cost_micros: Some(0), ..tokens };
        assert_snapshot!(serde_json::to_string(&Reply { usage: Some(cost), ..known }).unwrap(), @r#"
        {"text":"a","usage":{"input":7,"output":3,"cost_micros":0}}
        "#);
        let silent = Message::Assistant(Reply::default());
        assert_snapshot!(serde_json::to_string(&silent).unwrap(), @r#"
        {"role":"assistant"}
        "#);
        let answered = Message::Tool(ToolResult {
            id: call().id,
            text: "ok".to_owned(),
            structured: Some(json!({ "exit": 0 })),
            failed: true,
        });
        assert_snapshot!(serde_json::to_string(&answered).unwrap(), @r#"
        {"role":"tool","id":"t1-s1-1","text":"ok","structured":{"exit":0},"failed":true}
        "#);
        let heard = Message::User {
            from: "/root/a".to_owned(),
            sort: MailKind::Result,
            text: "done".to_owned(),
            opens_turn: false,
        };
        assert_snapshot!(serde_json::to_string(&heard).unwrap(), @r#"
        {"role":"user","from":"/root/a","sort":"RESULT","text":"done","opens_turn":false}
        "#);
    }

    #[test]
    fn old_data_without_later_fields_is_read() {
        assert_eq!(read::<Reply>(json!({})).unwrap(), Reply::default());
        let result: ToolResult = read(json!({ "id": "c", "text": "ok" })).unwrap();
        assert_eq!((result.structured, result.failed), (None, false));
    }

    #[test]
    fn fields_of_a_newer_program_are_passed_over_and_roles_are_not() {
        let new = json!({ "text": "a", "thinking": "b", "calls": [
            { "id": "t1-s1-1", "tool": "bash", "arguments": { "command": "true" }, "nice": 3 },
        ] });
        let reply = Reply { text: "a".to_owned(), calls: vec![call()], usage: None };
        assert_eq!(read::<Reply>(new).unwrap(), reply);
        // Nothing that was said may be lost unseen.
        assert!(read::<Message>(json!({ "role": "developer", "text": "a" })).is_err());
        // An id that no program could have written is refused, not carried along.
        assert!(read::<ToolResult>(json!({ "id": "../x", "text": "a" })).is_err());
    }

    proptest! {
        #[test]
        fn what_is_stored_is_what_is_read(
            text in any::<String>(),
            argument in any::<String>(),
            number in any::<i64>(),
            failed in any::<bool>(),
            tokens in any::<Option<(u64, u64, Option<u64>)>>(),
        ) {
            let mut call = call();
            call.arguments = json!({ "text": argument, "number": number, "list": [null, true] });
            let id = call.id.clone();
            for message in [
                Message::User {
                    from: text.clone(),
                    sort: MailKind::Mail,
                    text: text.clone(),
                    opens_turn: failed,
                },
                Message::Assistant(Reply {
                    text: text.clone(),
                    calls: vec![call.clone(), call],
                    usage: tokens.map(|(input, output, cost_micros)| Usage {
                        input,
                        output,
                        cost_micros,
                    }),
                }),
                Message::Tool(ToolResult { id, text, structured: Some(json!(number)), failed }),
            ] {
                let stored = serde_json::to_string(&message).unwrap();
                prop_assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
            }
        }
    }
}

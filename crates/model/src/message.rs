//! The messages of a conversation, as they are stored and as a model sees them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stead_core::event::MailKind;
use stead_core::id::CallId;
use stead_core::path::AgentPath;

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

/// What the loop asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who asks.
    pub agent: AgentPath,
    /// The instructions.
    pub instructions: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
}

//! What the loop asks for the next message, and the playbook that answers without a model.

pub mod message;
pub mod playbook;

use async_trait::async_trait;

pub use message::{Message, Purpose, Reply, Request, ToolCall, ToolResult, ToolSpec};
pub use playbook::{Playbook, PlaybookError};

/// Why a model gave no reply.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// The model or the playbook has nothing to say to this conversation.
    #[error("{0}")]
    NoReply(String),
    /// The provider could not be reached or refused.
    #[error("{0}")]
    Provider(String),
}

/// Whatever answers a conversation with the next message.
#[async_trait]
pub trait Model: Send + Sync {
    /// The next message. Deterministic for a playbook; it keeps no state of its own, so that a
    /// restarted engine asks again with the same conversation and gets the same answer.
    async fn reply(&self, request: &Request) -> Result<Reply, ModelError>;
}

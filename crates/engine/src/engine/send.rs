//! Messages from outside: a person's, or an agent's by the API.

use stead_core::event::{BranchEvent, Event};
use stead_core::id::{MailId, RequestId, SessionId};
use stead_core::mail::{Receipt, ReceiptState};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};

use super::{Engine, failed};
use crate::api::{SendParams, SendResponse};
use crate::caller::Caller;
use crate::session::{Surroundings, text_body};

impl Engine {
    /// Sends a message as the caller.
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        session: &SessionId,
        params: SendParams,
    ) -> Result<SendResponse, Refusal> {
        caller.check_session(session)?;
        let from = caller.sender()?;
        let handle = self.session(session).await?;
        if let Some(receipt) = self.sent_before(session, &params.request).await? {
            return Ok(SendResponse { receipt });
        }
        let (body, reference) = text_body(&params.message)?;
        // What may start a turn brings its surroundings; a note that is only stored does not.
        let may_start = params.wake || params.target == AgentPath::root().as_str();
        let surroundings = (*caller == Caller::Person && may_start)
            .then(|| Surroundings::new(params.environment, params.attendance));
        let command =
            Command::Send { from, target: params.target, body: reference, wake: params.wake };
        let request = Some(params.request.clone());
        match handle.run(command, vec![body], request, surroundings).await {
            Ok(Outcomes::Sent(receipt)) => Ok(SendResponse { receipt }),
            Ok(other) => Err(failed(format!("a message came to {other:?}"))),
            // The same request came twice at once: what the faster one stored answers both.
            Err(refusal) if refusal.kind == RefusalKind::Conflict => {
                let receipt = self.sent_before(session, &params.request).await?.ok_or(refusal)?;
                Ok(SendResponse { receipt })
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The receipt of a message that the same request sent, derived from what it stored.
    async fn sent_before(
        &self,
        session: &SessionId,
        request: &RequestId,
    ) -> Result<Option<Receipt>, Refusal> {
        let (id, asked) = (session.clone(), request.clone());
        let records = self
            .shared
            .read(move |reader| match reader.request(&id, &asked)? {
                Some(position) => reader.read(&id, position, 2),
                None => Ok(Vec::new()),
            })
            .await?;
        let mut events = records.into_iter().map(|r| (r.envelope.position, r.envelope.event));
        let Some((position, event)) = events.next() else { return Ok(None) };
        let Event::Branch(BranchEvent::MailStored { to, wake, .. }) = event else {
            return Err(Refusal::new(
                RefusalKind::AlreadyExists,
                format!("the request {request} did something else"),
            ));
        };
        let started = matches!(
            events.next(),
            Some((_, Event::Branch(BranchEvent::TurnStarted { path, .. }))) if path == to
        );
        let state = match (wake, started) {
            (_, true) => ReceiptState::TurnStarted,
            (true, false) => ReceiptState::QueuedForRunningTurn,
            (false, false) => ReceiptState::Stored,
        };
        let result_to = if wake { to.parent() } else { None };
        Ok(Some(Receipt { to, mail: MailId(position), state, result_to }))
    }
}

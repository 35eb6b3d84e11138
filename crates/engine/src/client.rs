//! The client: requests to an engine over its socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stead_core::id::{RootId, SessionId, TaskId};
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio::net::UnixStream;

use crate::api::{
    ApplyParams, ApplyResponse, DiscardParams, DiscardResponse, EngineResponse, EventsParams,
    FindParams, GarbageParams, GarbageResponse, GrantsResponse, InterruptParams, InterruptResponse,
    ModeParams, ModeResponse, Notification, PermissionsResponse, PermitParams, PermitResponse,
    RebindParams, ResultResponse, ReviewParams, ReviewResponse, RevokeParams, RootView, RuleParams,
    RulesResponse, SendParams, SendResponse, SessionParams, SessionView, StartParams,
    StartResponse, TasksResponse, TreeResponse,
};

/// How long an engine may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of one engine.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// A client over this socket; nothing is connected yet.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether somebody listens.
    pub async fn is_listening(&self) -> bool {
        UnixStream::connect(&self.socket).await.is_ok()
    }

    /// Who serves the home. Refused when nothing is heard for so long as no engine needs: one that
    /// was stopped takes connections and never answers.
    pub async fn engine(&self) -> Result<EngineResponse, Refusal> {
        self.engine_within(PATIENCE).await
    }

    async fn engine_within(&self, patience: Duration) -> Result<EngineResponse, Refusal> {
        tokio::time::timeout(patience, self.get("/v1/engine")).await.unwrap_or_else(|_| {
            Err(Refusal::new(
                RefusalKind::Unavailable,
                format!(
                    "the engine at {} has not answered for {patience:?}",
                    self.socket.display()
                ),
            )
            .hint("`stead doctor` names its process: it may be stopped"))
        })
    }

    /// Asks the engine to end its turns and itself.
    pub async fn stop(&self) -> Result<EngineResponse, Refusal> {
        self.post("/v1/engine/stop", &()).await
    }

    /// All sessions, the newest first.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, Refusal> {
        self.get("/v1/sessions").await
    }

    /// The session that a person means.
    pub async fn find(&self, params: &FindParams) -> Result<SessionId, Refusal> {
        let found: SessionParams = self.get(&format!("/v1/find{}", query(params)?)).await?;
        Ok(found.session)
    }

    /// Starts a session.
    pub async fn start(&self, params: &StartParams) -> Result<StartResponse, Refusal> {
        self.post("/v1/sessions", params).await
    }

    /// A session as it is.
    pub async fn tree(&self, session: &SessionId) -> Result<TreeResponse, Refusal> {
        self.get(&format!("/v1/sessions/{session}")).await
    }

    /// A session's tasks.
    pub async fn tasks(&self, session: &SessionId) -> Result<TasksResponse, Refusal> {
        self.get(&format!("/v1/sessions/{session}/tasks")).await
    }

    /// Freezes a copy and shows it against its base.
    pub async fn review(
        &self,
        session: &SessionId,
        task: TaskId,
        params: &ReviewParams,
    ) -> Result<ReviewResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/tasks/{task}/review"), params).await
    }

    /// Applies what was reviewed.
    pub async fn apply(
        &self,
        session: &SessionId,
        task: TaskId,
        params: &ApplyParams,
    ) -> Result<ApplyResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/tasks/{task}/apply"), params).await
    }

    /// Moves copies to the trash.
    pub async fn discard(
        &self,
        session: &SessionId,
        task: TaskId,
        params: &DiscardParams,
    ) -> Result<DiscardResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/tasks/{task}/discard"), params).await
    }

    /// Collects what nothing needs any more.
    pub async fn collect(&self, params: &GarbageParams) -> Result<GarbageResponse, Refusal> {
        self.post("/v1/garbage", params).await
    }

    /// The registered working roots.
    pub async fn roots(&self) -> Result<Vec<RootView>, Refusal> {
        self.get("/v1/roots").await
    }

    /// Says which folder a registered root is from now on.
    pub async fn rebind(&self, root: &RootId, params: &RebindParams) -> Result<RootView, Refusal> {
        self.post(&format!("/v1/roots/{root}"), params).await
    }

    /// The result of an agent's last turn, whole.
    pub async fn result(
        &self,
        session: &SessionId,
        path: &AgentPath,
    ) -> Result<ResultResponse, Refusal> {
        self.get(&format!("/v1/sessions/{session}/result?path={path}")).await
    }

    /// Sends a message as the caller.
    pub async fn send(
        &self,
        session: &SessionId,
        params: &SendParams,
    ) -> Result<SendResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/messages"), params).await
    }

    /// Ends one turn.
    pub async fn interrupt(
        &self,
        session: &SessionId,
        params: &InterruptParams,
    ) -> Result<InterruptResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/interrupts"), params).await
    }

    /// Answers a permission request.
    pub async fn permit(
        &self,
        session: &SessionId,
        params: &PermitParams,
    ) -> Result<PermitResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/permissions"), params).await
    }

    /// What is allowed in a session, and what waits.
    pub async fn permissions(&self, session: &SessionId) -> Result<PermissionsResponse, Refusal> {
        self.get(&format!("/v1/sessions/{session}/permissions")).await
    }

    /// Changes the rules of a session.
    pub async fn rule(
        &self,
        session: &SessionId,
        params: &RuleParams,
    ) -> Result<RulesResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/rules"), params).await
    }

    /// Takes a grant back.
    pub async fn revoke(
        &self,
        session: &SessionId,
        params: &RevokeParams,
    ) -> Result<GrantsResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/revocations"), params).await
    }

    /// Changes how much is asked.
    pub async fn mode(
        &self,
        session: &SessionId,
        params: &ModeParams,
    ) -> Result<ModeResponse, Refusal> {
        self.post(&format!("/v1/sessions/{session}/mode"), params).await
    }

    /// A session's events.
    pub async fn events(
        &self,
        session: &SessionId,
        params: &EventsParams,
    ) -> Result<EventStream, Refusal> {
        let path = format!("/v1/sessions/{session}/events{}", query(params)?);
        let response = self.exchange(Method::GET, &path, Bytes::new()).await?;
        let body = accepted(response).await?;
        Ok(EventStream { body, buffer: Vec::new() })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        parsed(self.exchange(Method::GET, path, Bytes::new()).await?).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        params: &impl Serialize,
    ) -> Result<T, Refusal> {
        let body = serde_json::to_vec(params).map_err(|e| broken(&e.to_string()))?;
        parsed(self.exchange(Method::POST, path, body.into()).await?).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Refusal> {
        let unreachable = |e: &dyn std::fmt::Display| {
            Refusal::new(
                RefusalKind::Unavailable,
                format!("the engine at {} does not answer: {e}", self.socket.display()),
            )
            .hint("the same command again starts one")
        };
        let stream = UnixStream::connect(&self.socket).await.map_err(|e| unreachable(&e))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| unreachable(&e))?;
        tokio::spawn(async move {
            // The exchange tells of errors; the connection ends with it.
            let _ = connection.await;
        });
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "stead")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|e| broken(&e.to_string()))?;
        sender.send_request(request).await.map_err(|e| unreachable(&e))
    }
}

/// The events of a session, as they come.
pub struct EventStream {
    body: Incoming,
    buffer: Vec<u8>,
}

impl EventStream {
    /// The next notification; none when the stream has ended.
    pub async fn next(&mut self) -> Result<Option<Notification>, Refusal> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(|e| broken(&e.to_string()));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                // It has ended, or the engine went away.
                None | Some(Err(_)) => return Ok(None),
            }
        }
    }
}

async fn accepted(response: Response<Incoming>) -> Result<Incoming, Refusal> {
    if response.status() == StatusCode::OK {
        return Ok(response.into_body());
    }
    let status = response.status();
    let bytes = collect(response).await?;
    Err(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        // Not a refusal of ours: the HTTP layer refused the request's form.
        let text = String::from_utf8_lossy(&bytes);
        Refusal::new(RefusalKind::InvalidArgument, format!("the engine answered {status}: {text}"))
    }))
}

async fn parsed<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Refusal> {
    let body = accepted(response).await?;
    let bytes = body.collect().await.map_err(|e| broken(&e.to_string()))?.to_bytes();
    serde_json::from_slice(&bytes).map_err(|e| broken(&e.to_string()))
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, Refusal> {
    let body = response.into_body();
    Ok(body.collect().await.map_err(|e| broken(&e.to_string()))?.to_bytes())
}

fn query(params: &impl Serialize) -> Result<String, Refusal> {
    let query = serde_urlencoded::to_string(params).map_err(|e| broken(&e.to_string()))?;
    Ok(if query.is_empty() { query } else { format!("?{query}") })
}

fn broken(why: &str) -> Refusal {
    Refusal::new(
        RefusalKind::Unavailable,
        format!("the engine's answer cannot be understood: {why}"),
    )
    .hint("the client and the engine may be of different versions; `stead doctor` names both")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_takes_connections_and_never_answers_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let refusal = Client::new(&socket).engine_within(Duration::from_millis(50)).await;
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Unavailable);
        assert!(refusal.line.contains("has not answered"), "{refusal}");
    }
}

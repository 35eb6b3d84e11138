//! Refusals on the wire: one table of HTTP statuses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use stead_core::refusal::{Refusal, RefusalKind};

/// The HTTP status of a refusal.
pub fn http_status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::InvalidArgument => StatusCode::BAD_REQUEST,
        RefusalKind::UnknownAgent | RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::AlreadyExists
        | RefusalKind::Conflict
        | RefusalKind::WrongState
        | RefusalKind::ShellsLive
        | RefusalKind::MailWaiting => StatusCode::CONFLICT,
        RefusalKind::NotAllowed | RefusalKind::PersonOnly | RefusalKind::Denied => {
            StatusCode::FORBIDDEN
        }
        RefusalKind::NoRoom | RefusalKind::OverBudget => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Storage | RefusalKind::Unknown => StatusCode::INSUFFICIENT_STORAGE,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Unreadable | RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A refusal as an HTTP answer: its status, and itself as the body.
#[derive(Debug)]
pub struct Failure(pub Refusal);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (http_status(self.0.kind), Json(self.0)).into_response()
    }
}

//! Request ids: one effect for a request that comes again.

use rusqlite::{Connection, OptionalExtension as _, params};
use stead_core::id::{Position, RequestId};

use crate::error::StoreError;
use crate::sql::{Number, failed};

/// The position of the first event of a request, over all events of the session, rewound or not.
pub(crate) fn position(
    connection: &Connection,
    session: i64,
    request: &RequestId,
) -> Result<Option<Position>, StoreError> {
    connection
        .prepare_cached("SELECT position FROM events WHERE session = ?1 AND request = ?2")
        .and_then(|mut statement| {
            statement
                .query_row(params![session, request.as_str()], |row| row.get::<_, Number>(0))
                .optional()
        })
        .map(|found| found.map(|position| position.0))
        .map_err(failed("look up a request"))
}

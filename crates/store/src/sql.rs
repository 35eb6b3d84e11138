//! Small change between SQLite and the rest of the crate.

use rusqlite::ErrorCode;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};

use crate::error::StoreError;

/// Turns a failure of SQLite while doing `act` into the store's error.
pub(crate) fn failed(act: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::NoRoom { act },
        _ => StoreError::Database { act, reason: error.to_string() },
    }
}

/// A count. SQLite counts in `i64`: a stored number below zero is damage, and a number beyond
/// `i64` cannot be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number(pub(crate) u64);

impl FromSql for Number {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = i64::column_result(value)?;
        u64::try_from(number).map(Self).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

impl ToSql for Number {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let number = i64::try_from(self.0);
        number
            .map(|number| ToSqlOutput::Owned(Value::Integer(number)))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

/// Whether SQLite says that the file itself is damaged.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TypeMismatch)
    ) || matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

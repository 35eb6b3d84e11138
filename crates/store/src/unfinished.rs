//! Which sessions may have been at work when their engine died.

use stead_core::id::SessionId;

use crate::error::StoreError;
use crate::reader::Reader;
use crate::sql::failed;

/// Answered from the index `turns` alone, whose condition stands here word for word: the
/// events themselves, which may be many, are not read at the start of an engine.
const SQL: &str = "SELECT s.id FROM events e JOIN sessions s ON s.key = e.session
     WHERE (e.kind = 'turn-started' OR e.kind = 'turn-settled' OR e.kind = 'agent-reserved'
         OR e.kind = 'agent-published' OR e.kind = 'agent-refused')
     GROUP BY e.session
     HAVING sum(e.kind = 'turn-started') <> sum(e.kind = 'turn-settled')
         OR sum(e.kind = 'agent-reserved') <> sum(e.kind IN ('agent-published', 'agent-refused'))";

impl Reader {
    /// The sessions with a turn that started and did not settle, or an agent that was reserved and
    /// neither published nor refused; so that recovery need not read every log.
    ///
    /// A rewind waits until nothing runs, so the counts agree on every branch.
    pub fn unfinished(&self) -> Result<Vec<SessionId>, StoreError> {
        let act = "look for unfinished turns";
        self.with(|connection| {
            let mut statement = connection.prepare_cached(SQL).map_err(failed(act))?;
            let ids = statement
                .query_map([], |row| row.get::<_, String>(0))
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(failed(act))?;
            // An id that does not parse is named by the check of the store, not here.
            Ok(ids.iter().filter_map(|id| SessionId::parse(id).ok()).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn the_events_themselves_are_not_read() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let plan: Vec<String> = store
            .reader()
            .with(|connection| {
                let mut statement =
                    connection.prepare(&format!("EXPLAIN QUERY PLAN {SQL}")).unwrap();
                let lines = statement.query_map([], |row| row.get(3)).unwrap();
                Ok(lines.collect::<Result<_, _>>().unwrap())
            })
            .unwrap();
        assert!(plan.iter().any(|l| l.contains("COVERING INDEX turns")), "{plan:?}");
    }
}

//! From what is frozen about an agent to what runs its turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stead_agent::{Driver, Loop};
use stead_core::event::DriverSpec;
use stead_core::id::Digest;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::Playbook;
use stead_store::Reader;

use crate::session::body_text;

/// The kind of the driver that plays a playbook.
pub(crate) const PLAYBOOK: &str = "playbook";

/// The drivers of an engine, each made once.
#[derive(Default)]
pub(crate) struct Drivers {
    playbooks: Mutex<HashMap<Digest, Arc<dyn Driver>>>,
}

impl Drivers {
    /// Whether a driver can be made.
    pub(crate) fn check(&self, reader: &Reader, spec: &DriverSpec) -> Result<(), Refusal> {
        self.driver(reader, spec).map(|_| ())
    }

    /// The driver that `spec` tells of.
    pub(crate) fn driver(
        &self,
        reader: &Reader,
        spec: &DriverSpec,
    ) -> Result<Arc<dyn Driver>, Refusal> {
        let (PLAYBOOK, Some(body)) = (spec.kind.as_str(), spec.body) else {
            return Err(Refusal::new(
                RefusalKind::Unreadable,
                format!("this program has no driver of the kind {}", spec.kind),
            )
            .hint("a newer stead wrote this session; use it"));
        };
        let mut known = self.playbooks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = known.get(&body.digest) {
            return Ok(driver.clone());
        }
        let text = body_text(reader, body)?;
        let driver: Arc<dyn Driver> = Arc::new(Loop::new(Arc::new(parse(&spec.name, &text)?)));
        known.insert(body.digest, driver.clone());
        Ok(driver)
    }
}

/// A playbook from its text; the refusal names the file.
pub(crate) fn parse(name: &str, text: &str) -> Result<Playbook, Refusal> {
    Playbook::parse(text).map_err(|error| {
        let place = match error.place.as_str() {
            "" => String::new(),
            place => format!(", {place}"),
        };
        let line = format!("the playbook {name}: line {}{place}: {}", error.line, error.problem);
        Refusal::new(RefusalKind::InvalidArgument, line).hint(error.hint)
    })
}

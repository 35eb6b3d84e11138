//! The driver that plays a playbook.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stead_agent::{Driver, Loop};
use stead_core::event::DriverSpec;
use stead_core::id::Digest;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_model::Playbook;
use stead_store::{Body, Reader};

use crate::session::{body_text, text_body};

/// The kind of this driver.
pub(super) const KIND: &str = "playbook";

/// A playbook is frozen whole; its name is for people.
pub(super) fn freeze(name: String, text: &str) -> Result<(DriverSpec, Vec<Body>), Refusal> {
    let reports = parse(&name, text)?.reports();
    let (body, reference) = text_body(text)?;
    let spec = DriverSpec { kind: KIND.to_owned(), name, body: Some(reference), reports };
    Ok((spec, vec![body]))
}

/// The playbooks of an engine, each parsed once.
#[derive(Default)]
pub(super) struct Playbooks {
    known: Mutex<HashMap<Digest, Arc<dyn Driver>>>,
}

impl Playbooks {
    /// The driver with the playbook that `spec` names.
    pub(super) fn driver(
        &self,
        reader: &Reader,
        spec: &DriverSpec,
    ) -> Result<Arc<dyn Driver>, Refusal> {
        let body = spec.body.ok_or_else(|| {
            Refusal::new(RefusalKind::Unreadable, format!("the playbook {} is missing", spec.name))
                .hint("`stead doctor` lists what is damaged")
        })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
fn parse(name: &str, text: &str) -> Result<Playbook, Refusal> {
    Playbook::parse(text).map_err(|error| {
        let place = match error.place.as_str() {
            "" => String::new(),
            place => format!(", {place}"),
        };
        let line = format!("the playbook {name}: line {}{place}: {}", error.line, error.problem);
        Refusal::new(RefusalKind::InvalidArgument, line).hint(error.hint)
    })
}

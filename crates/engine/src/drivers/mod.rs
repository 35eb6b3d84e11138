//! From what is frozen about an agent to what runs its turns: one file a kind of driver.

mod playbook;

use std::sync::Arc;

use stead_agent::Driver;
use stead_core::event::DriverSpec;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_store::{Body, Reader};

use crate::api::DriverParams;

/// What is frozen of the driver that a session asks for, with the bodies that this names. What
/// could never run a turn is refused here, before anything is stored.
pub(crate) fn freeze(params: DriverParams) -> Result<(DriverSpec, Vec<Body>), Refusal> {
    match params {
        DriverParams::Playbook { name, text } => playbook::freeze(name, &text),
    }
}

/// The drivers of an engine.
#[derive(Default)]
pub(crate) struct Drivers {
    playbooks: playbook::Playbooks,
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
        match spec.kind.as_str() {
            playbook::KIND => self.playbooks.driver(reader, spec),
            kind => Err(Refusal::new(
                RefusalKind::Unreadable,
                format!("this program has no driver of the kind {kind}"),
            )
            .hint("a newer stead wrote this session; use it")),
        }
    }
}

//! What an administrator's tests need to see what anybody else sees.

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Takes from this thread, and from those that it starts, what lets an administrator pass over
/// permission bits; nothing for anybody else, who has none.
pub fn as_a_plain_user() {
    let mut sets = capabilities(None).unwrap();
    sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, sets).unwrap();
}

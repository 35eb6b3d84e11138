//! Crash steps: the named places where a test may kill the program.
//!
//! Every return of an append, every whole replacement of a file and every start of a process calls
//! [`pass`] just before and just after. Without the feature `steps` the call is empty and inlined
//! away; with it, `pass` calls the one function that the program's `main` has set.

/// Which side of a durable act a step stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The act has not been asked of the system yet.
    Before,
    /// The act has returned; whatever it promises holds.
    After,
}

/// What the program's `main` sets: called with the step's name and moment.
pub type Observer = fn(&str, Moment);

#[cfg(feature = "steps")]
static OBSERVER: std::sync::OnceLock<Observer> = std::sync::OnceLock::new();

/// Sets the function that every later [`pass`] of this process calls. Only the first call counts.
#[cfg(feature = "steps")]
pub fn observe(observer: Observer) {
    let _ = OBSERVER.set(observer);
}

/// Passes the step `name`. Names are `crate.noun-verb`, as in `store.append`.
#[inline]
pub fn pass(name: &str, moment: Moment) {
    #[cfg(feature = "steps")]
    if let Some(observer) = OBSERVER.get() {
        observer(name, moment);
    }
    #[cfg(not(feature = "steps"))]
    let _ = (name, moment);
}

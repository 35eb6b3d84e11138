//! Trees: walked, captured, copied, compared, changed and removed, against what other programs say
//! about them.

mod capture;
mod copy;
mod edit;
mod kit;
mod random;
mod remove;
mod walk;

//! The order in which a deed is judged.

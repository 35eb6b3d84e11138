//! Private copies of working roots: made, reviewed, applied, kept.

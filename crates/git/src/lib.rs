//! Typed questions and changes over the `git` program, and the index file.

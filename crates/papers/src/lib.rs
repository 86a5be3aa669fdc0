//! Published values as data, experiments as code, and the side-by-side.

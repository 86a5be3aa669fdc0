//! Huge pages that are chosen and made from outside.

mod choice;
mod live;
mod support;
mod watch;

//! TLB lockdown (Song et al. 2022): which pages to keep in the few entries that can be locked.

pub mod layout;
mod pairs;
pub mod regions;
#[cfg(test)]
mod tests;

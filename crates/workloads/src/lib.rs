//! Kernels that the papers run, native and as access streams.

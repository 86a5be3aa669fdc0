//! Call sites of allocations: which frames of a call stack are runtime libraries or wrappers of an allocator.

use super::code_name::{base_name, CodeName};

/// Libraries whose frames are never the answer: libc, the loader, C++ and gcc runtimes, allocators,
/// and what recorders preload.
const LIBRARIES: [&str; 13] = [
    "libc.so",
    "libc-2.",
    "libc.musl",
    "ld-linux",
    "ld-2.",
    "ld-musl",
    "ld.so",
    "libstdc++.",
    "libc++.",
    "libgcc_s.",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Namespaces of the standard libraries: inlined containers and allocators.
const NAMESPACES: [&str; 7] = ["std::", "__gnu_cxx::", "alloc::", "core::", "hashbrown::", "__rust_", "__rdl_"];

/// Functions that ask the system for memory or hand it on.
const FUNCTIONS: [&str; 16] = [
    "mmap",
    "mmap64",
    "mremap",
    "brk",
    "sbrk",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "strdup",
    "xstrdup",
    "strndup",
    "xstrndup",
    // Rust's, in front of the allocator in use.
    "rdl_alloc",
    "rdl_alloc_zeroed",
    "rg_alloc",
    "rg_alloc_zeroed",
];

/// The frame belongs to a runtime library or wraps an allocator.
pub(super) fn is_runtime_or_allocator(name: &CodeName) -> bool {
    let module = base_name(&name.module);
    let library = LIBRARIES.iter().any(|prefix| module.starts_with(prefix)) || module.starts_with("vgpreload_");
    library || module == "[vdso]" || name.function.as_deref().is_some_and(wraps_allocator)
}

/// `malloc`, `xcalloc`, `g_malloc0_n`, `PyMem_Realloc`, `operator new`, `std::allocator<int>::allocate`, …
fn wraps_allocator(function: &str) -> bool {
    // `<alloc::vec::Vec<T> as …>::…` starts with the same words.
    let plain = own_name(function).trim_start_matches('<');
    if plain.starts_with("operator new") || NAMESPACES.iter().any(|space| plain.starts_with(space)) {
        return true;
    }
    let name = plain.to_ascii_lowercase();
    let name = name.trim_start_matches('_').trim_end_matches("_n").trim_end_matches('0');
    let last_word = name.rsplit("::").next().unwrap_or(name).trim_start_matches('_');
    let wrapper = ["malloc", "calloc", "realloc", "zalloc", "reallocarray"].iter().any(|end| last_word.ends_with(end));
    wrapper || FUNCTIONS.contains(&last_word)
}

/// The name without parameters, and without the result's type that C++ templates have before theirs.
fn own_name(function: &str) -> &str {
    let (mut depth, mut start) = (0u32, 0);
    for (at, c) in function.char_indices() {
        let rest = &function[at..];
        match c {
            '(' if depth == 0 && !rest.starts_with("(anonymous namespace)") => return &function[start..at],
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            // Not between `operator` and `new`.
            ' ' if depth == 0 && !function[start..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
    }
    &function[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_wrappers_from_callers() {
        for wrapper in [
            "malloc",
            "__libc_calloc",
            "xmalloc",
            "xrealloc",
            "g_malloc0_n",
            "PyMem_RawMalloc",
            "_PyObject_Malloc",
            "operator new(unsigned long)",
            "operator new[](unsigned long)",
            "sqlite3Malloc",
            "zcalloc",
            "__rustc::__rdl_alloc",
            "__rg_alloc_zeroed",
            "std::vector<int>::_M_realloc_insert",
            "__gnu_cxx::new_allocator<int>::allocate",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "__mmap64",
            "xstrdup",
            "my::pool::calloc(int)",
            "void std::vector<long, std::allocator<long> >::_M_realloc_insert<long>(long&&)",
            "std::pair<int, int>* std::__copy_move<true>::__copy_m<int>(int*)",
            "void* operator new<Pool>(unsigned long, Pool&)",
            "(anonymous namespace)::pool::malloc(unsigned long)",
            "void* pool::of<int (*)(int)>::malloc(int)",
        ] {
            assert!(wraps_allocator(wrapper), "{wrapper}");
        }
        for caller in [
            "main",
            "build_table",
            "allocate_nodes",
            "mallocate_all",
            "graph::build",
            "stdlib_load",
            "new_node",
            "std::vector<int> make<int>(int)",
            "(anonymous namespace)::fill(std::vector<int>&)",
        ] {
            assert!(!wraps_allocator(caller), "{caller}");
        }
    }

    #[test]
    fn runtime_libraries_are_passed_over() {
        let in_module =
            |module: &str| is_runtime_or_allocator(&CodeName { module: module.into(), ..CodeName::default() });
        assert!(in_module("/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(in_module("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"));
        assert!(in_module("/lib64/ld-linux-x86-64.so.2"));
        assert!(in_module("/usr/libexec/valgrind/vgpreload_core-amd64-linux.so"));
        assert!(!in_module("/usr/lib/libcairo.so.2"));
        assert!(!in_module("/usr/bin/ld"));
        assert!(!in_module(""));
    }
}

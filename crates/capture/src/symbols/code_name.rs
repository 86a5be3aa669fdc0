//! The name of a code address: function, source line, module.

/// The name of a code address. Its `Display` is the short form for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeName {
    /// Demangled name of the innermost function, inlined ones included; `None` = not known.
    pub function: Option<String>,
    /// The compiled function that the innermost one was inlined into; `None` = it was not inlined.
    pub inlined_into: Option<String>,
    /// Source file as the debug information has it.
    pub file: Option<String>,
    /// Line in `file`, from 1.
    pub line: Option<u32>,
    /// Path of the mapped file, or the kernel's name as `[vdso]`; empty = nothing known is mapped there.
    pub module: String,
    /// Address in the module as its own tables and `objdump` have it, in bytes; offset in the file
    /// where the file is no readable ELF; the plain address where `module` is empty.
    pub offset: u64,
}

impl CodeName {
    /// `module+0xoffset`, the module without its folders.
    pub fn module_offset(&self) -> String {
        match self.module.as_str() {
            "" => format!("{:#x}", self.offset),
            module => format!("{}+{:#x}", base_name(module), self.offset),
        }
    }
}

impl std::fmt::Display for CodeName {
    /// `function (file:line)`, `function (module+0x…)`, or `module+0x…`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.function, &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => write!(f, "{function} ({}:{line})", base_name(file)),
            (Some(function), ..) => write!(f, "{function} ({})", self.module_offset()),
            (None, Some(file), Some(line)) => write!(f, "{}:{line}", base_name(file)),
            (None, ..) => f.write_str(&self.module_offset()),
        }
    }
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

//! Recording a program: the recorder, and the file that it fills. For `record`, `analyze`, `plan` and `workload`.

pub mod backend;
pub mod trace_file;

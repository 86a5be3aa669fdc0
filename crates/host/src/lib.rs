//! The one reader of the running system: what `/proc` and `/sys` say of processes, memory, CPUs and huge pages, perf
//! events, the CPUs that a thread is bound to, and mapped memory.
//!
//! What it reads is plain data; a [`HostError`] names the file and what was found in it. Code that may not allocate
//! (the preloaded library, the allocator) reads what it needs by itself.
//!
//! ```
//! use lookaside_host::{allowed_cpus, CpuTopology, Process};
//!
//! let own = Process::own();
//! let huge: u64 = own.smaps()?.iter().map(|vma| vma.anonymous_huge_bytes).sum();
//! println!("{huge} bytes of this process are in transparent huge pages");
//!
//! for cpu in allowed_cpus()? {
//!     let last = CpuTopology::here().last_cache(cpu).and_then(|cache| cache.bytes);
//!     println!("CPU {cpu}: last-level cache of {last:?} bytes");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_os = "linux")]
mod affinity;
#[cfg(target_os = "linux")]
mod cpu_clock;
mod cpus;
mod created_file;
mod error;
mod frames;
#[cfg(target_os = "linux")]
mod held_file;
#[cfg(target_os = "linux")]
mod mapping;
mod memory;
#[cfg(target_os = "linux")]
pub mod perf;
mod process;
mod process_stat;
mod processes;
#[cfg(target_os = "linux")]
mod referenced_bits;
mod system;
mod trusted_path;
mod units;
mod user_cache;
mod vma;

#[cfg(target_os = "linux")]
pub use affinity::{allowed_cpus, bind_to, current_cpu, Pinned};
#[cfg(target_os = "linux")]
pub use cpu_clock::cpu_time;
pub use cpus::{CacheKind, CpuCache, CpuTopology};
pub use created_file::{check_place, create_file, folder_of};
pub use error::{FileProblem, HostError};
pub use frames::{FrameScatter, BLOCK_FRAMES, REGION_FRAMES};
#[cfg(target_os = "linux")]
pub use held_file::{mount_id, HeldFile};
#[cfg(target_os = "linux")]
pub use mapping::Mapping;
pub use memory::{
    available_bytes, fragmented_free_bytes, free_huge_blocks, meminfo_bytes, HugePagePool, TransparentHugePages,
};
pub use process::Process;
pub use process_stat::{ProcessStat, ProcessStatus};
pub use processes::{all_processes, control_group_folder, control_group_processes};
#[cfg(target_os = "linux")]
pub use referenced_bits::ReferencedBits;
pub use system::{
    boot_id, kernel_release, kernel_version, load_average, most_tasks, perf_event_paranoid, powercap_folder, stolen_ms,
    system_product, ticks_per_second, uptime_seconds, vulnerabilities, CpuInfo,
};
pub use trusted_path::is_only_ours;
pub use user_cache::{cache_folder, cache_name, state_folder};
pub use vma::{parse_smaps, Vma};

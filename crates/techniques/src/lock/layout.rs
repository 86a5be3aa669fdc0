//! Where everything of one run lies: its regions, the profiler's told apart, and what is known of their making.

use lookaside_trace::{parse_maps, Block, Event, Granularity, Kind, MapSource, MemoryMap, Region};
use serde::{Deserialize, Serialize};

/// Who ran the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runner {
    /// The kernel alone: what is mapped later lies lower.
    Native,
    /// Valgrind, any tool: what is mapped later lies higher.
    Valgrind,
    /// QEMU's user-mode emulator.
    Qemu,
}

/// What a region is to the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A mapped file.
    File,
    /// The kernel's own, as `[vdso]`.
    Kernel,
    /// Zero-filled memory right behind a file's last writable bytes: its `.bss`.
    Bss {
        /// Path of the file.
        path: String,
    },
    /// The brk heap.
    Heap,
    /// The first thread's stack.
    Stack,
    /// Any other memory.
    Anonymous,
    /// The profiler's: its tool, its libraries, its memory.
    Profiler,
}

/// A region and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// Where, and what is behind it.
    pub region: Region,
    /// What it is to the program.
    pub role: Role,
}

/// The regions of one run at one time, with those that it had before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionLayout {
    /// In order of address.
    pub areas: Vec<Area>,
    /// Who ran the program.
    pub runner: Runner,
    /// Stack pointer at the program's first instruction, where `argc` lies: the stack above it is the environment's.
    /// `None` = not known.
    pub entry_stack: Option<u64>,
}

/// Valgrind's plan of a 64-bit address space (coregrind/m_aspacemgr/aspacemgr-linux.c, `VG_(am_startup)`): its own
/// memory begins at the middle of the 128 GiB that it manages, and the program's stack ends 16 MiB below their end.
const VALGRIND_MEMORY: std::ops::Range<u64> = 0x10_0000_0000..0x20_0000_0000;
const VALGRIND_STACK_END: u64 = 0x1f_ff00_1000;

impl RegionLayout {
    /// From the text of `/proc/PID/maps`, of a plain run or of one under Valgrind (64-bit), whose tool is among the
    /// mapped files then. The listing of a program in QEMU is what the program itself reads there.
    pub fn from_listing(text: &str, runner: Runner, entry_stack: Option<u64>) -> RegionLayout {
        let mut regions = parse_maps(text);
        if runner == Runner::Valgrind {
            name_valgrinds(&mut regions);
        }
        RegionLayout::new(regions, runner, entry_stack)
    }

    /// From regions in any order. [`Region::made`] tells their order of making, where known.
    pub fn new(mut regions: Vec<Region>, runner: Runner, entry_stack: Option<u64>) -> RegionLayout {
        regions.retain(|region| region.start < region.end);
        regions.sort_by_key(|region| region.start);
        let stacks = || regions.iter().filter(|region| region.source == MapSource::Stack);
        let of_entry = entry_stack.and_then(|entry| stacks().find(|region| region.holds(entry)));
        // Recorders call other threads' stacks so, too; the kernel puts the first one above all it maps later.
        let stack = of_entry.or_else(|| stacks().next_back()).map(|region| region.start);
        let mut areas: Vec<Area> = Vec::with_capacity(regions.len());
        for region in regions {
            match areas.last_mut().filter(|before| continues(before, &region)) {
                Some(before) => before.region.end = region.end,
                None => {
                    let role = role(&region, areas.last(), runner, stack);
                    areas.push(Area { region, role });
                }
            }
        }
        RegionLayout { areas, runner, entry_stack }
    }

    /// The area that holds `addr`.
    pub fn find(&self, addr: u64) -> Option<&Area> {
        let at = self.areas.partition_point(|area| area.region.end <= addr);
        self.areas.get(at).filter(|area| area.region.holds(addr))
    }

    /// Path of the program: of all files the lowest mapped one, but for a dynamic linker's.
    pub fn program(&self) -> Option<&str> {
        self.files().find(|path| !is_linker(path))
    }

    /// No dynamic linker is mapped.
    pub(super) fn is_static(&self) -> bool {
        !self.files().any(is_linker)
    }

    pub(super) fn has_vdso(&self) -> bool {
        let is_vdso = |area: &Area| matches!(&area.region.source, MapSource::File { path, .. } if path == "[vdso]");
        self.areas.iter().any(is_vdso)
    }

    fn files(&self) -> impl Iterator<Item = &str> {
        self.areas.iter().filter(|area| area.role == Role::File).filter_map(|area| path(&area.region))
    }
}

/// `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`, …
fn is_linker(path: &str) -> bool {
    base_name(path).starts_with("ld-")
}

/// Gives Valgrind's stack and heap of the program their names, and its own what makes them the profiler's.
fn name_valgrinds(regions: &mut [Region]) {
    let profiler = || MapSource::File { path: "valgrind".into(), offset: 0 };
    let tool = regions.iter().find(|region| is_tool(region)).map_or(VALGRIND_MEMORY.start, |region| region.start);
    let mut after_tool = 0;
    let mut heap_seen = false;
    for region in regions {
        let anonymous = region.source == MapSource::Anonymous;
        if matches!(region.source, MapSource::Stack | MapSource::Heap) {
            region.source = profiler(); // The kernel's are those of Valgrind itself.
        } else if anonymous && region.end == VALGRIND_STACK_END {
            region.source = MapSource::Stack;
        } else if anonymous && (VALGRIND_MEMORY.contains(&region.start) || region.start == after_tool) {
            region.source = profiler();
            after_tool = region.end;
        } else if anonymous && region.prot == 7 && region.start < tool && !heap_seen {
            // It maps the data segment with all rights, which programs hardly ever ask for.
            region.source = MapSource::Heap;
            heap_seen = true;
        } else if is_tool(region) {
            after_tool = region.end;
        }
    }
}

/// A mapping of Valgrind's tool itself, as `/usr/libexec/valgrind/lackey-amd64-linux`.
fn is_tool(region: &Region) -> bool {
    let MapSource::File { path, .. } = &region.source else { return false };
    let tool = base_name(path);
    path.contains("valgrind") && tool.ends_with("-linux") && !tool.starts_with("vgpreload")
}

/// A mapping of the profiler's, by its name: libraries that it preloads, files that it shares, and `valgrind` itself.
fn is_profilers(path: &str) -> bool {
    let name = base_name(path);
    name.starts_with("vgpreload_") || name.starts_with("vgdb-pipe-shared-mem") || path == "valgrind"
}

/// `next` is more of the same file, split by what was done to a part of it; or the heap, as long as it was.
fn continues(area: &Area, next: &Region) -> bool {
    let region = &area.region;
    let same = region.end == next.start && region.prot == next.prot && region.tail(next.start).source == next.source;
    same && (area.role == Role::Heap || area.role == Role::File && region.gone == next.gone)
}

fn role(region: &Region, before: Option<&Area>, runner: Runner, stack: Option<u64>) -> Role {
    let touches = before.filter(|before| before.region.end == region.start);
    match &region.source {
        MapSource::Heap => Role::Heap,
        MapSource::Stack if stack == Some(region.start) => Role::Stack,
        MapSource::Stack => Role::Anonymous,
        MapSource::File { path, .. } if is_profilers(path) || runner == Runner::Valgrind && is_tool(region) => {
            Role::Profiler
        }
        MapSource::File { path, .. } if path.starts_with('[') => Role::Kernel,
        MapSource::File { .. } => Role::File,
        MapSource::Anonymous => match touches {
            Some(Area { region: Region { source: MapSource::File { path, .. }, prot, .. }, role: Role::File })
                if prot & 2 != 0 && region.prot & 2 != 0 =>
            {
                Role::Bss { path: path.clone() }
            }
            _ => Role::Anonymous,
        },
    }
}

/// The last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Path of a mapped file; the kernel marks one that has been removed since.
pub(super) fn path(region: &Region) -> Option<&str> {
    match &region.source {
        MapSource::File { path, .. } => Some(path.strip_suffix(" (deleted)").unwrap_or(path)),
        _ => None,
    }
}

/// Makes the layout of a recorded run while its blocks go by: one process, from its last exec on.
#[derive(Debug)]
pub struct RecordedLayout {
    process: Option<u32>,
    map: MemoryMap,
    runner: Runner,
    /// Addresses have their low bits.
    whole_addresses: bool,
    entry_stack: Option<u64>,
}

impl RecordedLayout {
    /// Of the first process that comes by. `runner` and `granularity` are the recording's.
    pub fn new(runner: Runner, granularity: Granularity) -> RecordedLayout {
        let whole_addresses = granularity != Granularity::Line;
        RecordedLayout { process: None, map: MemoryMap::default(), runner, whole_addresses, entry_stack: None }
    }

    /// The process, once a block of it has come by.
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    /// Takes note of a block's events, and of where its stack begins.
    pub fn observe(&mut self, block: &Block) {
        if *self.process.get_or_insert(block.process) != block.process {
            return;
        }
        let mut from = 0;
        for (at, event) in &block.events {
            self.look(block, from..*at as usize);
            from = *at as usize;
            if matches!(event, Event::Exec { .. }) {
                self.entry_stack = None;
            }
            self.map.apply(event);
        }
        self.look(block, from..block.len());
    }

    /// The regions now, and those before where nothing is now.
    pub fn layout(&self) -> RegionLayout {
        RegionLayout::new(self.map.last_known(), self.runner, self.entry_stack)
    }

    /// The first data access to the stack is the first instruction's: it reads `argc` at the stack pointer, or calls,
    /// and so writes right below it. The kernel aligns the pointer to 16 bytes (`STACK_ROUND`, fs/binfmt_elf.c).
    fn look(&mut self, block: &Block, accesses: std::ops::Range<usize>) {
        if self.entry_stack.is_some() || !self.whole_addresses {
            return;
        }
        let columns = block.addr.get(accesses.clone()).unwrap_or_default().iter();
        let data = columns.zip(block.kind.get(accesses).unwrap_or_default()).filter(|(_, kind)| **kind != Kind::Fetch);
        let on_stack = |addr: &u64| self.map.find(*addr).is_some_and(|region| region.source == MapSource::Stack);
        let first = data.map(|(addr, _)| *addr).find(on_stack);
        self.entry_stack = first.map(|addr| addr.next_multiple_of(16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, pages: std::ops::Range<u64>, prot: u8, first: u64) -> Region {
        let source = MapSource::File { path: path.into(), offset: first << 12 };
        Region::new(pages.start << 12, pages.end << 12, prot, source)
    }

    fn memory(source: MapSource, pages: std::ops::Range<u64>, prot: u8) -> Region {
        Region::new(pages.start << 12, pages.end << 12, prot, source)
    }

    fn areas(regions: &[Region]) -> Vec<Area> {
        RegionLayout::new(regions.to_vec(), Runner::Native, None).areas
    }

    #[test]
    fn a_file_or_heap_that_goes_on_is_one_area_and_nothing_else_is() {
        let gone = |region: Region| Region { gone: true, ..region };
        let (first, heap) = (file("/a", 1..3, 1, 5), memory(MapSource::Heap, 1..3, 3));
        for (first, next, is_one) in [
            (&first, file("/a", 3..4, 1, 7), true),
            (&first, file("/a", 3..4, 5, 7), false),
            (&first, file("/a", 4..5, 1, 8), false),
            (&first, file("/a", 3..4, 1, 8), false),
            (&first, file("/b", 3..4, 1, 7), false),
            (&first, gone(file("/a", 3..4, 1, 7)), false),
            (&file("[vvar]", 1..3, 1, 5), file("[vvar]", 3..4, 1, 7), false),
            (&memory(MapSource::Anonymous, 1..3, 3), memory(MapSource::Anonymous, 3..4, 3), false),
            // What it has shrunk from.
            (&heap, gone(memory(MapSource::Heap, 3..4, 3)), true),
            (&heap, memory(MapSource::Heap, 4..5, 3), false),
        ] {
            let found: Vec<Region> =
                areas(&[next.clone(), first.clone()]).into_iter().map(|area| area.region).collect();
            let one = Region { end: next.end, ..first.clone() };
            let expected = if is_one { vec![one] } else { vec![first.clone(), next] };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn bss_is_written_and_lies_right_behind_what_is() {
        let role = |before: &Region, pages, prot| {
            let both = areas(&[before.clone(), memory(MapSource::Anonymous, pages, prot)]);
            both[1].role.clone()
        };
        let bss = Role::Bss { path: "/a".into() };
        let (data, code) = (file("/a", 1..3, 3, 0), file("/a", 1..3, 5, 0));
        assert_eq!([role(&data, 3..5, 3), role(&data, 3..5, 2)], [bss.clone(), bss]);
        let others = [role(&data, 4..5, 3), role(&data, 3..5, 1), role(&data, 3..5, 5), role(&code, 3..5, 3)];
        assert_eq!(others, [(); 4].map(|()| Role::Anonymous));
        // The kernel's own has none, and is no program.
        let vdso = file("[vdso]", 1..3, 3, 0);
        assert_eq!(
            (areas(std::slice::from_ref(&vdso))[0].role.clone(), role(&vdso, 3..5, 3)),
            (Role::Kernel, Role::Anonymous)
        );
        assert_eq!(RegionLayout::new(vec![vdso], Runner::Native, None).program(), None);
    }

    #[test]
    fn among_valgrinds_own_the_programs_files_stay_its_own() {
        use Role::{Anonymous, File, Heap, Profiler, Stack};

        let listing = "\
04035000-04056000 rwxp 00000000 00:00 0 
05000000-05001000 rwxp 00000000 00:00 0 
58000000-58198000 r-xp 00001000 fe:00 91 /usr/libexec/valgrind/lackey-amd64-linux
58198000-58199000 rw-p 00000000 00:00 0 
58199000-5819a000 rw-p 00000000 00:00 0 
5819b000-5819c000 rwxp 00000000 00:00 0 
1000000000-1000001000 rw-p 00000000 00:00 0 
1003000000-1003001000 r--p 00000000 fe:00 20 /home/u/data
1ffeffe000-1fff001000 rw-p 00000000 00:00 0 
2000000000-2000001000 rw-p 00000000 00:00 0 
";
        let layout = RegionLayout::from_listing(listing, Runner::Valgrind, None);
        let roles: Vec<&Role> = layout.areas.iter().map(|area| &area.role).collect();
        let tools = [&Profiler, &Profiler, &Profiler, &Anonymous, &Profiler];
        assert_eq!(roles, [&[&Heap, &Anonymous][..], &tools, &[&File, &Stack, &Anonymous]].concat());
    }
}

//! Random machines.

use lookaside_machine::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const FORMATS: [TableFormat; 7] = [
    TableFormat::X86_64L4,
    TableFormat::X86_64L5,
    TableFormat::Armv7Short,
    TableFormat::Armv7Lpae,
    TableFormat::Aarch64K4,
    TableFormat::Sv39,
    TableFormat::Sv48,
];

fn cycles() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1e9), 0.0..1e9, (0u32..1000).prop_map(f64::from)]
}

fn shared_by() -> impl Strategy<Value = SharedBy> {
    select(vec![SharedBy::Thread, SharedBy::Core, SharedBy::Socket])
}

fn serves() -> impl Strategy<Value = Vec<Serves>> {
    subsequence(vec![Serves::Load, Serves::Store, Serves::Fetch], 1..=3)
}

fn tags() -> impl Strategy<Value = Vec<Tag>> {
    subsequence(vec![Tag::Vmid, Tag::HwThread, Tag::Domain, Tag::Global], 0..=4)
}

/// Entries, ways and a policy that go together, and the number of sets.
fn geometry() -> impl Strategy<Value = (u32, Ways, Replacement, u32)> {
    let policies = vec![Replacement::Lru, Replacement::TreePlru, Replacement::Fifo, Replacement::Random];
    (0u32..8, 1u32..20, any::<bool>(), select(policies)).prop_map(|(set_bits, ways, full, replacement)| {
        let entries = ways << set_bits;
        match full {
            true if replacement != Replacement::TreePlru => (entries, Ways::Full(Full::Full), replacement, 1),
            _ => (entries, Ways::Count(ways), replacement, 1 << set_bits),
        }
    })
}

/// Independent masks below `number_bits`: the low bit of each row, and any bits above all of these.
pub fn index(sets: u32, number_bits: u32, linear: bool, noise: u64) -> IndexFn {
    if linear {
        return IndexFn::Linear;
    }
    let bits = sets.trailing_zeros();
    let high = (1u64 << number_bits) - (1u64 << bits);
    let mask = |i: u32| 1u64 << i | (noise.rotate_left(7 * i) & high);
    IndexFn::Masks((0..bits).map(mask).collect())
}

fn tlb(sizes: Vec<PageSize>, base: PageSize, address_bits: u32) -> impl Strategy<Value = Tlb> {
    let shape = (geometry(), subsequence(sizes.clone(), 1..=sizes.len()), any::<bool>(), any::<u64>());
    (shape, serves(), tags(), 0u32..1024, 0u32..=6, cycles(), shared_by()).prop_map(
        move |(shape, serves, tags, lockable_entries, coalesce, hit_cycles, shared_by)| {
            let ((entries, ways, replacement, sets), page_sizes, linear, noise) = shape;
            let coalesce = if page_sizes.contains(&base) { coalesce } else { 0 };
            // Few bits are left above a 1G page of a 32-bit address: one set then.
            let smallest = page_sizes.iter().min().map_or(12, |s| s.shift());
            let number_bits = address_bits.saturating_sub(smallest).saturating_sub(coalesce);
            let (ways, sets, replacement) = match sets.trailing_zeros() > number_bits {
                true => (Ways::Full(Full::Full), 1, Replacement::Lru),
                false => (ways, sets, replacement),
            };
            Tlb {
                name: String::new(),
                level: 1,
                serves,
                page_sizes,
                entries,
                ways,
                index: index(sets, number_bits, linear, noise),
                replacement,
                tags,
                lockable_entries,
                coalesce_pages: 1 << coalesce,
                directory_entries: false,
                hit_cycles,
                shared_by,
            }
        },
    )
}

fn walk_cache(guest: TableFormat, host: Option<TableFormat>) -> impl Strategy<Value = WalkCache> {
    (geometry(), any::<bool>(), 0u32..5, cycles(), shared_by()).prop_map(
        move |((entries, ways, replacement, _), host_stage, level, hit_cycles, shared_by)| {
            let (stage, lowest, format) = match host {
                Some(host) if host_stage => (Stage::Host, 1, host),
                _ => (Stage::Guest, 2, guest),
            };
            let root = format.levels()[0].level;
            let table_level = lowest + level % (root + 1 - lowest);
            let name = String::new();
            WalkCache { name, table_level, entries, ways, replacement, hit_cycles, stage, shared_by }
        },
    )
}

fn cache() -> impl Strategy<Value = Cache> {
    let hash = (any::<bool>(), any::<u64>());
    (geometry(), serves(), 4u32..=12, (any::<bool>(), hash), cycles(), shared_by()).prop_map(
        |((lines, ways, replacement, sets), serves, line_bits, (write_allocate, hash), hit_cycles, shared_by)| Cache {
            name: String::new(),
            level: 1,
            serves,
            size: u64::from(lines) << line_bits,
            ways,
            line_bytes: 1 << line_bits,
            index: index(sets, 46 - line_bits, hash.0, hash.1),
            replacement,
            write_allocate,
            filled_by: FilledBy::Misses,
            hit_cycles,
            shared_by,
        },
    )
}

/// Levels 1, 1, 2, 2, 3 … of a list.
fn level(i: usize) -> u32 {
    1 + i as u32 / 2
}

/// Any possible machine.
pub fn machine() -> impl Strategy<Value = Machine> {
    (select(FORMATS.to_vec()), proptest::option::of(select(FORMATS.to_vec()))).prop_flat_map(|(guest, host)| {
        let mut sizes = guest.page_sizes();
        sizes.extend(host.map(TableFormat::page_sizes).unwrap_or_default());
        sizes.sort();
        sizes.dedup();
        let arrays = (
            vec(tlb(sizes, guest.page_sizes()[0], guest.address_bits()), 1..6),
            vec(walk_cache(guest, host), 0..5),
            vec(cache(), 0..5),
        );
        let rest = (
            (1u32..5, 1u32..5, 1u32..3),
            (0.001..1e9, cycles(), cycles(), cycles()),
            (any::<u32>(), proptest::option::of(cycles()), any::<bool>(), any::<u64>()),
            (".*", vec(".*", 0..3)),
        );
        (arrays, rest).prop_map(move |((mut tlbs, mut walk_caches, mut caches), rest)| {
            let mut fed = u32::MAX;
            let ((sockets, cores_per_socket, threads_per_core), costs, (first, walk_memory, tagged, pick), texts) =
                rest;
            for (i, t) in tlbs.iter_mut().enumerate() {
                (t.name, t.level) = (format!("t{i}"), level(i));
                t.directory_entries = t.level > 1 && t.entries % 2 == 0;
                if tagged {
                    t.tags.push(Tag::Asid);
                }
            }
            tlbs[0].serves = vec![Serves::Store, Serves::Load];
            walk_caches.iter_mut().enumerate().for_each(|(i, w)| w.name = format!("w-{i}"));
            for (i, c) in caches.iter_mut().enumerate() {
                (c.name, c.level) = (format!("C_{i}"), level(i));
            }
            if let [.., before, last] = &mut caches[..] {
                let fills = before.write_allocate || !last.serves.contains(&Serves::Store);
                if fills && last.serves.iter().all(|kind| before.serves.contains(kind)) {
                    last.replacement = Replacement::Srrip;
                }
            }
            // One in four of those with two levels of caches: the last holds what the one before throws out.
            let levels = caches.last().map_or(0, |c| c.level);
            if let ([.., before, last], true) = (&mut caches[..], pick % 4 == 1 && levels > 1) {
                (before.write_allocate, last.write_allocate) = (true, true);
                (last.filled_by, last.serves) = (FilledBy::Victims, before.serves.clone());
                last.size = u64::from(last.lines()) * u64::from(before.line_bytes);
                (last.line_bytes, last.index) = (before.line_bytes, IndexFn::Linear);
                fed = before.level;
            }
            let cache_levels = caches.last().map_or(0, |c| c.level);
            let action = match tagged {
                true => SwitchAction::Nothing,
                false if pick % 2 == 0 => SwitchAction::FlushTlb,
                false => SwitchAction::FlushTlbAndCaches,
            };
            let host = host.map(|format| {
                let sizes = format.page_sizes();
                HostTable {
                    format,
                    page_size: sizes[pick as usize % sizes.len()],
                    memory_bits: (pick % 5 == 0).then_some(30 + (pick % 15) as u32),
                }
            });
            // One TLB's sets, some figures or none.
            let figures = |some: bool| match tlbs[0].sets() {
                sets if some => (0..sets).map(|set| costs.1 / f64::from(1 + set)).collect(),
                _ => Vec::new(),
            };
            let disturbances = (pick % 2 == 0).then(|| Disturbance {
                tlb: tlbs[0].name.clone(),
                evictions_per_second: figures(true),
                evictions_per_system_call: figures(pick % 4 == 0),
                evictions_per_context_switch: Vec::new(),
            });
            let disturbances = disturbances.into_iter().collect();
            let machine = Machine {
                name: "random".into(),
                description: texts.0,
                sources: texts.1.clone(),
                clock_mhz: costs.0,
                topology: Topology { sockets, cores_per_socket, threads_per_core },
                page_table: PageTable { format: guest, host },
                walker: Walker {
                    base_cycles: costs.1,
                    first_cache_level: (1 + first % (cache_levels + 1)).min(fed),
                    memory_cycles: walk_memory,
                },
                tlbs,
                walk_caches,
                caches,
                memory: Memory { cycles: costs.2, bytes_per_second: (pick % 4 == 0).then_some(costs.3.max(1e6)) },
                stream: (pick % 3 == 0).then_some(Stream {
                    cache_cycles: costs.3,
                    memory_cycles: costs.1,
                    walk_cycles: (pick % 2 == 0).then_some(costs.0),
                }),
                context_switch: ContextSwitch {
                    action,
                    cycles: costs.3,
                    address_spaces: (pick % 5 == 0).then_some(1 + first % 7),
                },
                disturbances,
                timing: (pick % 3 == 1).then(|| timing(pick)),
                not_determined: texts.1,
                origins: Origins::default(),
            };
            match pick % 4 {
                0 => machine,
                1 => machine.all_from(Origin::Measured),
                2 => machine.all_from(Origin::Cpuid),
                _ => {
                    let mut machine = machine.all_from(Origin::Preset);
                    machine.origins.set(&format!("tlb.{}.replacement", machine.tlbs[0].name), Origin::Assumed);
                    machine
                }
            }
        })
    })
}

/// A table of some figures that can be.
fn timing(pick: u64) -> Timing {
    let figure = |ns: u64| {
        let ns = ns as f64 / 8.0 + 1.0;
        Quartiles::from([ns, ns * 1.5, ns * 2.0])
    };
    let costs = |ns: u64| ReadCosts { dependent_ns_per_read: figure(8 * ns), independent_ns_per_read: figure(ns) };
    let row = |beside_stream: bool| RandomReads {
        footprint: 1 + pick % (1 << 40),
        beside_stream,
        small_pages: costs(pick % 1000),
        huge_pages: pick.is_multiple_of(2).then(|| costs(pick % 700)),
        overlapping_misses: pick.is_multiple_of(2).then(|| figure(pick % 9)),
        overlapping_walks: None,
    };
    let faults = [PageSize::K4, PageSize::M2]
        .map(|page_size| PageFaultCost { page_size, ns_per_fault: figure(page_size.bytes()) });
    Timing {
        random_reads: [false, true].map(row).into(),
        sequential_reads: vec![SequentialReads {
            beside_stream: pick.is_multiple_of(2),
            bytes_per_second: figure(pick % (1 << 30)),
        }],
        page_faults: faults.into_iter().take(pick as usize % 3).collect(),
    }
}

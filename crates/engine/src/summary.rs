//! From counts to an [`Outcome`].

use lookaside_machine::PageSize;

use crate::classes::{CLASSES, KINDS, SIDES, SIDE_OF};
use crate::context::KERNEL;
use crate::engine::Engine;
use crate::interval_state::IntervalUnits;
use crate::os::to_cycles;
use crate::pages::NONE;
use crate::plan::WalkPlan;
use crate::rows::RowCost;
use crate::{CacheCounts, Cost, Detail, IpRow, ObjectRow, Outcome, PageRow, RegionRow, Side, ThreadRow, TlbCounts};

impl Engine {
    /// The counts so far; the run may go on afterwards.
    pub fn outcome(&self) -> Outcome {
        let machine = &self.setup.machine;
        let mut outcome = Outcome {
            machine: machine.name.clone(),
            data: self.side(0),
            fetch: self.side(1),
            tlbs: (0..machine.tlbs.len()).map(|array| self.tlb_counts(array)).collect(),
            walk_caches: self.walk_cache_counts(),
            caches: (0..machine.caches.len()).map(|cache| self.cache_counts(cache)).collect(),
            context_switches: self.counts.context_switches,
            shootdowns: self.counts.shootdowns,
            switch_cycles: to_cycles(u128::from(self.counts.context_switches) * u128::from(self.plan.switch_units)),
            pages_touched: self.by_size(|class| self.spaces.iter().map(|space| space.pages.ever[class]).sum()),
            table_bytes: self.counts.table_bytes,
            intervals: self.interval_counts(),
            ..Outcome::default()
        };
        for space in &self.spaces[KERNEL + 1..] {
            let [loads, stores, fetches] = space.accesses;
            let [loads, stores, instructions] = space.totals.unwrap_or([loads, stores, fetches]);
            outcome.loads += loads;
            outcome.stores += stores;
            outcome.instructions += instructions;
        }
        if self.setup.detail == Detail::Rows {
            self.page_and_region_rows(&mut outcome);
            outcome.objects = self.object_rows();
            outcome.instructions_rows = self.ip_rows();
            outcome.threads = self.thread_rows();
        }
        outcome
    }

    /// (size, count) by leaf size, ascending, zeros left out.
    fn by_size(&self, count: impl Fn(usize) -> u64) -> Vec<(PageSize, u64)> {
        let sizes = (0..CLASSES).map(|class| (self.plan.leaf_shift[class], count(class)));
        sum_by_shift(sizes)
    }

    fn side(&self, side: usize) -> Side {
        let kinds = || (0..KINDS).filter(move |&kind| SIDE_OF[kind] == side);
        let routes = || kinds().flat_map(|kind| self.counts.reached[kind].iter());
        let walks = |class: usize| kinds().map(|kind| last(&self.counts.reached[kind][class])).sum::<u64>();
        let recorded: u64 = routes().map(|reached| reached[0]).sum();
        let tables = &self.counts.tables[side];
        let references: u64 = tables.iter().sum();
        let walk_count = walks(0) + walks(1);

        let served = self.walk_served(side, references);
        Side {
            accesses: recorded + kinds().map(|kind| self.counts.repeats[kind]).sum::<u64>(),
            cost: Cost {
                l1_misses: routes().map(|reached| reached[1.min(reached.len() - 1)]).sum(),
                walks: walk_count,
                walk_references: references,
                walk_references_memory: last(&served),
                tlb_hit_cycles: to_cycles(self.hit_units(side)),
                walk_cycles: to_cycles(self.walk_units(side)),
            },
            walks_by_page_size: self.by_size(walks),
            walk_references_by_server: self.server_names().zip(served).collect(),
            walk_references_by_table: self.table_names().zip(tables.iter().copied()).collect(),
            data_stall_cycles: to_cycles(kinds().map(|kind| self.stall_units(kind)).sum()),
        }
    }

    /// Walk references of a side by data cache in the machine's order, then memory.
    fn walk_served(&self, side: usize, references: u64) -> Vec<u64> {
        let caches = self.plan.caches.len();
        let mut served = vec![0; caches + 1];
        if let WalkPlan::AlwaysAt(number) = self.plan.walks {
            served[number] = references;
            return served;
        }
        for (position, &count) in self.counts.walk_served[side].iter().enumerate() {
            served[self.plan.walk_route.get(position).copied().unwrap_or(caches)] += count;
        }
        served
    }

    /// Units of TLB hits of a side.
    fn hit_units(&self, side: usize) -> u128 {
        let of_side = |kind: &usize| SIDE_OF[*kind] == side;
        let units = self.plan.tlbs.iter().zip(&self.counts.tlbs).map(|(tlb, tally)| {
            let hits: u64 = (0..KINDS).filter(of_side).flat_map(|kind| tally.hits[kind]).sum();
            product(hits, tlb.hit_units)
        });
        units.sum()
    }

    /// Units of walks of a side.
    fn walk_units(&self, side: usize) -> u128 {
        let of_side = |kind: &usize| SIDE_OF[*kind] == side;
        let walks = (0..KINDS).filter(of_side).flat_map(|kind| &self.counts.reached[kind]).map(|reached| last(reached));
        let base = if self.plan.walks == WalkPlan::CountOnly { 0 } else { product(walks.sum(), self.plan.base_units) };
        let hits = self.plan.walk_caches.iter().zip(&self.counts.walk_caches);
        let hits: u128 = hits.map(|(cache, sides)| product(sides[side].1, cache.hit_units)).sum();
        let references = match self.plan.walks {
            WalkPlan::AlwaysAt(number) => {
                product(self.counts.tables[side].iter().sum(), self.plan.reference_units(Some(number)))
            }
            _ => {
                let server = |position: usize| self.plan.walk_route.get(position).copied();
                let served = self.counts.walk_served[side].iter().enumerate();
                served.map(|(position, &count)| product(count, self.plan.reference_units(server(position)))).sum()
            }
        };
        base + hits + references - self.counts.walk_units_ahead[side]
    }

    /// Accesses; units of translation; those of stalls and switches.
    pub(crate) fn units(&self) -> (u64, u128, u128) {
        let recorded: u64 = self.counts.reached.iter().flatten().map(|reached| reached[0]).sum();
        let translation = (0..SIDES).map(|side| self.hit_units(side) + self.walk_units(side)).sum::<u128>();
        let stalls = (0..KINDS).map(|kind| self.stall_units(kind)).sum::<u128>();
        let switches = product(self.counts.context_switches, self.plan.switch_units);
        (recorded + self.counts.repeats.iter().sum::<u64>(), translation, stalls + switches)
    }

    /// What was counted so far, for intervals.
    pub(crate) fn interval_units(&self) -> IntervalUnits {
        let (accesses, translation, other) = self.units();
        let walks = self.counts.reached.iter().flatten().map(|reached| last(reached)).sum();
        let walk = (0..SIDES).map(|side| self.walk_units(side)).sum();
        let arrays = self.setup.machine.tlbs.iter().zip(&self.plan.tlbs).zip(&self.counts.tlbs);
        let first = arrays.filter(|((tlb, _), _)| tlb.level == 1);
        let first_level =
            first.map(|((_, tlb), counts)| product(counts.hits.iter().flatten().sum(), tlb.hit_units)).sum();
        IntervalUnits { accesses, walks, walk, translation, other, first_level }
    }

    /// Units that data accesses of a kind waited beyond a hit in their first cache.
    fn stall_units(&self, kind: usize) -> u128 {
        let stall = |count: u64, position: usize, streamed: bool| {
            product(count, self.plan.stall_units(kind, position, streamed))
        };
        let counts = self.counts.data_served[kind].iter().zip(&self.counts.data_streamed[kind]).enumerate();
        counts.map(|(at, (&all, &streamed))| stall(all - streamed, at, false) + stall(streamed, at, true)).sum()
    }

    fn server_names(&self) -> impl Iterator<Item = String> + '_ {
        self.setup.machine.caches.iter().map(|cache| cache.name.clone()).chain(["memory".to_owned()])
    }

    fn table_names(&self) -> impl Iterator<Item = String> + '_ {
        let guest = self.plan.guest_levels.iter().map(|level| format!("guest L{}", level.level));
        let host = self.plan.host.iter().flat_map(|host| &host.levels);
        guest.chain(host.map(|level| format!("host L{}", level.level)))
    }

    fn tlb_counts(&self, array: usize) -> TlbCounts {
        let tally = &self.counts.tlbs[array];
        let mut lookups = tally.repeat_lookups;
        for kind in 0..KINDS {
            for class in 0..CLASSES {
                let levels = &self.plan.routes[kind][class].levels;
                let asked = levels.iter().position(|level| level.arrays.contains(&array));
                lookups += asked.map_or(0, |at| self.counts.reached[kind][class][at]);
            }
        }
        let hits = |class: usize| (0..KINDS).map(|kind| tally.hits[kind][class]).sum::<u64>();
        let shifts = self.plan.tlbs[array].entry_shift;
        let by_size = (0..CLASSES).filter_map(|class| shifts[class].map(|shift| (shift, hits(class))));
        let tlb = &self.setup.machine.tlbs[array];
        TlbCounts {
            name: tlb.name.clone(),
            level: tlb.level,
            lookups,
            hits: hits(0) + hits(1),
            locked_hits: tally.locked_hits,
            hits_by_page_size: sum_by_shift(by_size),
            fills: tally.fills,
            evictions: tally.evictions,
            invalidated: self.counts.invalidated[array],
        }
    }

    fn walk_cache_counts(&self) -> Vec<CacheCounts> {
        let machine = &self.setup.machine;
        let names = machine.walk_caches.iter().map(|cache| cache.name.clone());
        let arrays = self.plan.directories.arrays.iter();
        let names = names.chain(arrays.map(|&array| directory_name(&machine.tlbs[array].name)));
        let counts = names.zip(&self.counts.walk_caches).map(|(name, sides)| CacheCounts {
            name,
            walk_lookups: sides.iter().map(|side| side.0).sum(),
            walk_hits: sides.iter().map(|side| side.1).sum(),
            ..CacheCounts::default()
        });
        counts.collect()
    }

    fn cache_counts(&self, cache: usize) -> CacheCounts {
        let asked = |route: &[usize], served: &[u64]| match route.iter().position(|&number| number == cache) {
            Some(at) => (served[at..].iter().sum(), served[at]),
            None => (0, 0),
        };
        let data = (0..KINDS).map(|kind| asked(&self.plan.data_route[kind], &self.counts.data_served[kind]));
        let (data_lookups, data_hits) = data.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let walks = (0..SIDES).map(|side| asked(&self.plan.walk_route, &self.counts.walk_served[side]));
        let (walk_lookups, walk_hits) = walks.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let name = self.setup.machine.caches[cache].name.clone();
        CacheCounts { name, data_lookups, data_hits, walk_lookups, walk_hits }
    }

    fn page_and_region_rows(&self, outcome: &mut Outcome) {
        let mut sums = vec![(0u64, 0u64, RowCost::default()); self.rows.regions.len()];
        for page in &self.rows.pages {
            if let Some((pages, accesses, cost)) = sums.get_mut(page.region as usize) {
                *pages += 1;
                *accesses += page.accesses;
                cost.add(&page.cost);
            }
        }
        let mut order: Vec<usize> = (0..sums.len()).filter(|&region| sums[region].0 > 0).collect();
        let regions = &self.rows.regions;
        order.sort_by_key(|&i| (regions[i].process, regions[i].start, regions[i].end, i));
        let mut row_of = vec![NONE; sums.len()];
        for (new, &old) in order.iter().enumerate() {
            row_of[old] = new as u32;
            let (region, (pages, accesses, cost)) = (&regions[old], &sums[old]);
            outcome.regions.push(RegionRow {
                process: region.process,
                start: region.start,
                end: region.end,
                source: region.source.clone(),
                site: region.site.clone(),
                pages: *pages,
                accesses: *accesses,
                cost: cost.cost(),
            });
        }
        let mut pages: Vec<_> = self.rows.pages.iter().collect();
        let process = |page: &crate::rows::PageTotals| self.spaces[page.space as usize].process;
        let region = |page: &crate::rows::PageTotals| row_of.get(page.region as usize).copied();
        pages.sort_by_cached_key(|page| {
            let hottest_first = std::cmp::Reverse(page.cost.units());
            (hottest_first, self.address(page), process(page), page.class, region(page))
        });
        outcome.pages.extend(pages.into_iter().map(|page| PageRow {
            process: process(page),
            addr: self.address(page),
            size: page_size(self.plan.leaf_shift[usize::from(page.class)]),
            region: region(page),
            accesses: page.accesses,
            cost: page.cost.cost(),
        }));
    }

    /// A page's address, the kernel's with all upper bits set.
    fn address(&self, page: &crate::rows::PageTotals) -> u64 {
        let upper_bits = !self.plan.address_mask;
        if page.space as usize == KERNEL && self.plan.format.address_bits() > 32 {
            page.va | upper_bits
        } else {
            page.va
        }
    }

    fn object_rows(&self) -> Vec<ObjectRow> {
        let pending = self.rows.pending_object_accesses();
        let objects = self.rows.objects.iter().zip(&pending);
        let mut rows: Vec<(u64, ObjectRow)> = objects
            .filter(|(object, pending)| object.accesses + *pending > 0 || object.cost.l1_misses > 0)
            .map(|(object, pending)| {
                let row = ObjectRow {
                    process: object.process,
                    site: object.site.clone(),
                    allocations: object.allocations,
                    peak_bytes: object.peak_bytes,
                    largest: object.largest,
                    accesses: object.accesses + pending,
                    cost: object.cost.cost(),
                };
                (object.cost.units(), row)
            })
            .collect();
        rows.sort_by(|(a_units, a), (b_units, b)| {
            b_units.cmp(a_units).then_with(|| (a.process, &a.site).cmp(&(b.process, &b.site)))
        });
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn ip_rows(&self) -> Vec<IpRow> {
        let mut ips: Vec<_> = self.rows.ips.iter().collect();
        ips.sort_by_key(|(process, ip, cost)| (std::cmp::Reverse(cost.units()), *process, *ip));
        ips.into_iter().map(|&(process, ip, cost)| IpRow { process, ip, cost: cost.cost() }).collect()
    }

    fn thread_rows(&self) -> Vec<ThreadRow> {
        let mut threads: Vec<_> = self.threads.iter().filter(|thread| thread.accesses > 0).collect();
        threads.sort_by_key(|thread| (thread.process, thread.thread));
        let row = |thread: &crate::rows::ThreadTotals| ThreadRow {
            process: thread.process,
            thread: thread.thread,
            accesses: thread.accesses,
            cost: thread.cost.cost(),
        };
        threads.into_iter().map(row).collect()
    }
}

/// What the directory entries in an array are called among the walk caches.
fn directory_name(array: &str) -> String {
    format!("{array} (directory)")
}

/// (size, count) ascending, equal sizes summed, zeros left out.
fn sum_by_shift(counts: impl Iterator<Item = (u32, u64)>) -> Vec<(PageSize, u64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (shift, count) in counts {
        *sums.entry(shift).or_insert(0) += count;
    }
    sums.into_iter().filter(|(_, count)| *count > 0).map(|(shift, count)| (page_size(shift), count)).collect()
}

/// Shifts come from page sizes, so they are in range.
fn page_size(shift: u32) -> PageSize {
    PageSize::from_shift(shift).unwrap_or(PageSize::K4)
}

fn product(count: u64, units: u64) -> u128 {
    u128::from(count) * u128::from(units)
}

fn last(counts: &[u64]) -> u64 {
    counts.last().copied().unwrap_or(0)
}

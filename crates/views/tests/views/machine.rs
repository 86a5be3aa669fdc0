//! A machine's description, as text and page.

use lookaside_machine::{parse, preset, presets, Machine};
use lookaside_report::{html, terminal, Style};
use lookaside_views::machine;
use proptest::prelude::*;

use crate::random_machine;

fn text(machine: &Machine, width: usize) -> String {
    let style = Style { width, ..Style::default() };
    terminal::render(&machine::view(machine), &style)
}

#[test]
fn a_machine_in_words() {
    let toml = "name = \"tiny\"\ndescription = \"a test\"\nclock_mhz = 500\npage_table.format = \"sv39\"\n\
        memory.cycles = 100\ncontext_switch.action = \"flush-tlb\"\nnot_determined = [\"nothing\"]\n\
        [[tlb]]\nname = \"t\"\nlevel = 1\nserves = [\"load\", \"store\"]\npage_sizes = [\"4K\", \"2M\"]\nentries = 8\n\
        ways = 2\nindex = [\"0x5\", 2]\nreplacement = \"lru\"\nhit_cycles = 1.5\ncoalesce_pages = 4\nlockable_entries = 1\n\
        [[walk_cache]]\nname = \"w\"\ntable_level = 3\nentries = 2\nways = \"full\"\nreplacement = \"fifo\"\n\
        [[cache]]\nname = \"c\"\nlevel = 1\nserves = [\"load\"]\nsize = \"4K\"\nways = 4\nhit_cycles = 3\nshared_by = \"socket\"\n";
    let expected = "\
tiny: a test
cores           1 socket × 1 core × 1 thread, 500 MHz
page table      sv39, 3 levels (4K, 2M, 1G)
memory          100 cycles (200 ns)
walks           0 cycles each, beside references to caches from level 1 on
context switch  flushes TLBs and walk caches, 0 cycles

TLB  level  serves       pages   entries  ways  sets  replaces  cycles  one per
t        1  load, store  4K, 2M        8     2     4  lru          1.5  core
  no tags; coalesces 4 pages; +1 lockable; index masks (page-number bits): 0x5 (0^2), 0x2 (1)

walk cache  holds            entries  ways  sets  replaces  cycles  one per
w           level 3 entries        2  full     1  fifo           0  core

data cache  level  serves   size  ways  sets  line  replaces  cycles  one per
c               1  load    4 KiB     4    16  64 B  lru            3  socket

Not determined
· nothing
";
    assert_eq!(text(&parse(toml, "tiny.toml").unwrap(), 100), expected);
    let passed = toml.replace("size = \"4K\"", "size = \"4K\"\nwrite_allocate = false");
    let passed = text(&parse(&passed, "tiny.toml").unwrap(), 100);
    assert!(passed.contains("socket\n  stores don't fill it\n"), "{passed}");
    let victims = text(&preset("zen4").unwrap(), 100);
    assert!(victims.contains("; holds what the one before throws out\n"), "{victims}");
    let hashed = toml.replace("size = \"4K\"", "size = \"4K\"\nindex = [\"0x11\", 2, 4, 8]");
    let hashed = text(&parse(&hashed, "tiny.toml").unwrap(), 100);
    assert!(hashed.contains("socket\n  index masks (line-number bits): 0x11 (0^4), 0x2 (1),"), "{hashed}");
}

#[test]
fn the_list_has_a_line_for_each_preset() {
    let all: Vec<Machine> = presets().iter().map(|of| preset(of.name).unwrap()).collect();
    let list = terminal::render(&machine::presets::view(&all), &Style { width: 160, ..Style::default() });
    assert_eq!(list.lines().count(), presets().len() + 1);
    let line = list.lines().find(|line| line.starts_with("ryzen-5900x")).unwrap();
    assert!(line.contains("64 full + 2048×16"), "{line}");
}

proptest! {
    #[test]
    fn any_machine_can_be_drawn(machine in random_machine::machine(), width in 60usize..240) {
        let text = text(&machine, width);
        prop_assert!(text.lines().count() > 5);
        prop_assert!(text.lines().all(|line| lookaside_report::text::width(line) <= width), "{text}");
        let page = html::render(&machine::view(&machine));
        prop_assert!(page.contains("<table"), "{page}");
    }
}

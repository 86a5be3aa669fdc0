//! Instructions of no effect that stand between two visits, as many as the program has there.
//!
//! A core looks a few hundred instructions ahead. How many visits that wait for nobody are under way at a time depends
//! on how many instructions lie between two of them.

/// Instructions of one turn of the loop below.
const A_TURN: f64 = 8.0;
/// Of the replay's own loop, for each visit, for each other line of its page, and for each further read of a line: as
/// compiled for x86-64.
const OWN_A_VISIT: f64 = 9.0;
const OWN_A_LINE: f64 = 7.0;
const OWN_A_READ: f64 = 3.0;
/// Beyond these no two visits are under way at a time: twice the 512 that Golden Cove's reorder buffer holds (Intel
/// optimization manual, section 2.4), which is the largest of the cores here.
const MOST: f64 = 1024.0;

/// Turns of the loop that make up for what a program has between two visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionsBetween {
    turns: u32,
}

impl InstructionsBetween {
    /// For so many instructions in all, over `visits` visits with `others` further lines, all of whose lines are read
    /// `again` times more.
    pub fn new(instructions: f64, visits: usize, others: usize, again: usize) -> Self {
        let a_visit = |count: f64| count / visits.max(1) as f64;
        let own = OWN_A_VISIT + OWN_A_LINE * a_visit(others as f64) + OWN_A_READ * a_visit(again as f64);
        let missing = (a_visit(instructions) - own).clamp(0.0, MOST);
        Self { turns: (missing / A_TURN).round() as u32 }
    }

    /// There are none to execute.
    pub fn is_none(self) -> bool {
        self.turns == 0
    }

    /// Executes them.
    #[inline(always)]
    pub fn execute(self) {
        for _ in 0..self.turns {
            turn();
        }
    }
}

/// Six instructions that do not wait for each other; the loop around it has two.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn turn() {
    // SAFETY: adds numbers in registers that are named as overwritten, and nothing else.
    unsafe {
        std::arch::asm!(
            "lea {a}, [{a} + 1]", "lea {b}, [{b} + 1]", "lea {c}, [{c} + 1]",
            "lea {a}, [{a} + 1]", "lea {b}, [{b} + 1]", "lea {c}, [{c} + 1]",
            a = out(reg) _, b = out(reg) _, c = out(reg) _,
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn turn() {
    // SAFETY: adds numbers in registers that are named as overwritten, and nothing else.
    unsafe {
        std::arch::asm!(
            "add {a}, {a}, #1", "add {b}, {b}, #1", "add {c}, {c}, #1",
            "add {a}, {a}, #1", "add {b}, {b}, #1", "add {c}, {c}, #1",
            a = out(reg) _, b = out(reg) _, c = out(reg) _,
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn turn() {
    for number in 0..3u64 {
        std::hint::black_box(number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_replay_lacks() {
        let turns =
            |instructions, visits, others, again| InstructionsBetween::new(instructions, visits, others, again).turns;
        // 49 a visit, of which the loop has nine; with two more lines each it has 23, with eight more reads 24 more.
        assert_eq!([turns(4900.0, 100, 0, 0), turns(4900.0, 100, 200, 0), turns(4900.0, 100, 0, 800)], [5, 3, 2]);
        // Fewer than the replay has itself, none recorded, and no visits.
        assert_eq!([turns(500.0, 100, 0, 0), turns(0.0, 100, 0, 0), turns(0.0, 0, 0, 0)], [0, 0, 0]);
        assert_eq!(turns(1e12, 100, 0, 0), 128);
    }
}

use lookaside_harness::RowVerdict;

use super::*;

/// A machine of which a setting takes a time, with noise that is drawn from a seed.
struct MadeUp {
    noise: u64,
    runs: u32,
}

impl SettingMeasurer for MadeUp {
    fn refuses(&self, way: &HelperSetting) -> Option<String> {
        (way.place == HelperPlace::Sibling).then(|| "no SMT sibling here".into())
    }

    fn measure(&mut self, way: Option<&HelperSetting>) -> Result<RunTimes, String> {
        self.runs += 1;
        self.noise = self.noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let noise = (self.noise >> 40) as f64 / (1 << 24) as f64; // 0 to 1
        let faster = match way {
            None => 1.0,
            Some(HelperSetting { place: HelperPlace::Same, .. }) => 0.5,
            Some(HelperSetting { level: HelperLevel::User, nops, .. }) => 1.2 - f64::from(*nops) * 1e-4,
            Some(HelperSetting { level: HelperLevel::Kernel, .. }) => 1.4,
        };
        Ok(RunTimes { ns_per_read: (150.0 + noise) / faster, helper_cpu_share: 0.3 })
    }

    fn how(&self) -> String {
        "made up".into()
    }
}

fn reproduction() -> Reproduction {
    Reproduction { paper: "pt-baker".into(), measured: true, ..Reproduction::default() }
}

fn swept(seed: u64, halt: &dyn Fn() -> Option<String>) -> (Reproduction, u32) {
    let mut machine = MadeUp { noise: seed, runs: 0 };
    let swept = sweep(&mut machine, seed, halt, &mut |_| ());
    let mut found = reproduction();
    put(&mut found, Ok(&swept), seed, 400); // few, since they are slow where nothing is optimised
    (found, machine.runs)
}

#[test]
fn settings_are_told_apart_by_the_same_judge_as_compares() {
    let (found, runs) = swept(1, &|| None);
    let usable = ways().iter().filter(|way| way.place != HelperPlace::Sibling).count() as u32;
    assert_eq!(runs, ROUNDS * (usable + 2));
    let row = |what: &str| found.rows.iter().find(|row| row.what.contains(what)).expect(what);
    assert_eq!(row("which way improves more").verdict, RowVerdict::Holds);
    assert!(row("SMT sibling").note.contains("no SMT sibling here"));
    let nops = found.series.iter().find(|series| series.name.starts_with("Figure 6.10")).expect("a curve");
    for ((nops, percent), (low, high)) in nops.points.iter().zip(&nops.intervals) {
        let made = 20.0 - nops * 1e-2;
        assert!(low <= percent && percent <= high && (percent - made).abs() < 1.0, "{nops}: {percent}, made {made}");
    }
    assert_eq!(swept(1, &|| None).0, found);
}

#[test]
fn an_interrupt_leaves_complete_rounds() {
    let left = std::cell::Cell::new(100);
    let halt = || {
        left.set(left.get() - 1);
        (left.get() < 0).then(|| "interrupted".to_string())
    };
    let (found, runs) = swept(1, &halt);
    assert_eq!(runs, 100);
    let rounds = 100 / (ways().len() as u32 - 2 + 2);
    assert!((1..5).contains(&rounds));
    assert!(found.assumptions.iter().any(|line| line.contains(&format!("{rounds} of {ROUNDS} rounds (interrupted)"))));
    assert!(!found.series.is_empty() && found.halted.as_deref() == Some("interrupted"));
    assert!(found.rows.iter().all(|row| row.verdict == RowVerdict::NotReproduced));
}

#[test]
fn the_table_takes_what_is_allowed_and_half_of_what_is_free() {
    let gib = 1 << 30;
    assert_eq!(size(None, Ok(16 * gib)), Ok(gib));
    assert_eq!(size(None, Ok(gib + 5)), Ok(gib / 2));
    assert_eq!(size(Some(8 * gib), Ok(64 * gib)), Ok(8 * gib));
    assert!(size(Some(64 << 20), Ok(64 * gib)).expect_err("too small").contains("--memory"));
    assert_eq!(size(None, Err("no such file".into())), Err("no such file".into()));
}

/// On whatever machine this is: each setting is measured, or says why not.
#[test]
fn this_machine_measures_or_says_why_not() {
    let mut native = ReadsBench::new(16 << 20, 1).expect("little memory");
    let mut taken = 0;
    for way in [HelperPlace::OtherCore, HelperPlace::Sibling, HelperPlace::Same]
        .iter()
        .flat_map(|place| ways().into_iter().filter(|way| way.place == *place && way.sleep_microseconds == 1000))
    {
        match native.refuses(&way) {
            Some(why) => assert!(!why.is_empty() && !why.contains('\n')),
            None => {
                let came = native.measure(Some(&way)).expect("was not refused");
                assert!(came.ns_per_read > 0.0 && came.helper_cpu_share >= 0.0, "{way}");
                taken += 1;
            }
        }
    }
    assert!(taken > 0, "prefetches on this thread's own CPU can always be");
    let allowed = native.allowed.clone();
    drop(native);
    assert_eq!(allowed_cpus().expect("a set"), allowed);
}

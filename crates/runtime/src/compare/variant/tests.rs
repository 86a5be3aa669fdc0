//! What variants are called, and what they need.

use super::*;

fn names(text: &str) -> Vec<String> {
    Variant::list(text).expect(text).iter().map(ToString::to_string).collect()
}

#[test]
fn settings_stay_with_their_baker() {
    assert_eq!(
        names("base,thp,bake:prefetch,stride=16,sleep=1ms,bake:scan,share=0.5,nothp,hugepages:auto:64,hugepages:plan.toml,text,text:4,text:code.toml,bake:auto,share=0.2"),
        [
            "base",
            "thp",
            "bake:prefetch:t0,stride=16,sleep=1000000ns",
            "bake:scan,share=0.5",
            "nothp",
            "hugepages:auto:64",
            "hugepages:plan.toml",
            "text",
            "text:4",
            "text:code.toml",
            "bake:auto,share=0.2"
        ]
    );
}

#[test]
fn base_is_always_there_and_first() {
    assert_eq!(names("thp"), ["base", "thp"]);
    assert_eq!(names("thp,base"), ["base", "thp"]);
    assert_eq!(names("base"), ["base"]);
}

#[test]
fn mistakes_get_a_line_each() {
    for (text, part) in [
        ("", "no such variant"),
        ("base,hugetlb", "`hugetlb`"),
        ("thp,thp", "twice"),
        ("base,base", "twice"),
        ("thp,base,base", "twice"),
        ("bake:scan,bake:scan", "twice"),
        ("bake:", "no such backend"),
        ("bake:scan,stride=4", "every entry"),
        ("hugepages:auto", "auto:K"),
        ("hugepages:auto:0", "auto:K"),
        ("hugepages:auto:4,hugepages:auto:4", "twice"),
        ("hugepages:a.toml,hugepages:a.toml", "twice"),
        ("text:0", "want all, or a number"),
        ("text:few", "want all, or a number"),
        ("text,text:all", "twice"),
        ("bake:load", "bake:prefetch"),
        ("thp,stride=4", "`stride=4`"),
    ] {
        let error = Variant::list(text).expect_err(text).to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
}

/// A system with these settings, as long as the folder is there.
fn system(files: [Option<&str>; 2]) -> (tempfile::TempDir, TransparentHugePages) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("hugepages-2048kB")).expect("a folder");
    for (setting, text) in THP.into_iter().zip(files) {
        if let Some(text) = text {
            std::fs::write(folder.path().join(setting), text).expect("a file");
        }
    }
    let settings = TransparentHugePages::in_folder(folder.path());
    (folder, settings)
}

#[test]
fn a_kernel_before_6_18_gives_huge_pages_to_all_where_it_gives_them_always() {
    let of = |word: &str, kernel| {
        let (_folder, settings) = system([None, Some(word)]);
        gives_to_all_in(&settings, kernel)
    };
    let always = "[always] madvise never";
    let kernels = [Some((6, 17)), Some((5, 99)), Some((6, 18)), Some((7, 0)), None];
    assert_eq!(kernels.map(|kernel| of(always, kernel)), [true, true, false, false, false]);
    assert_eq!(["always [madvise] never", "always madvise [never]"].map(|word| of(word, Some((6, 17)))), [false; 2]);
    // As here.
    let here = gives_to_all_in(&TransparentHugePages::here(), kernel_version());
    assert_eq!(gives_to_all(), here);
}

#[test]
fn what_the_system_says_of_huge_pages() {
    let check = |files: [Option<&str>; 2]| {
        let (_folder, settings) = system(files);
        check_thp_in(&settings)
    };
    assert_eq!(check([None, Some("always [madvise] never\n")]), Ok(()));
    assert_eq!(check([Some("always [inherit] madvise never"), Some("[always] madvise never")]), Ok(()));
    assert_eq!(check([Some("always inherit [madvise] never"), Some("always madvise [never]")]), Ok(()));
    assert!(check([Some("[inherit]"), Some("always madvise [never]")]).is_err());
    assert!(check([None, None]).is_err());
}

#[test]
fn tunables_are_added_to_those_that_are_there() {
    assert_eq!(joined(None, OsStr::new("b")), "b");
    assert_eq!(joined(Some("".into()), OsStr::new("b")), "b");
    assert_eq!(joined(Some("a=1".into()), OsStr::new("b=2")), "a=1:b=2");
    let inside = PreloadedBaker {
        file: "/x/lib.so".into(),
        report: "/x/report".into(),
        read: |_| None,
        read_code: |_| None,
        code_plans: Default::default(),
    };
    let set = Variant::Inside("auto".into()).environment(Some(&inside));
    assert!(set[0].0 == "LD_PRELOAD" && set[0].1.to_string_lossy().ends_with("/x/lib.so"));
    assert_eq!(set[1..], [("LOOKASIDE_BAKE", "auto".into()), ("LOOKASIDE_BAKE_STATS", "/x/report".into())]);
    assert!(Variant::Base.environment(Some(&inside)).is_empty());
    assert!(Variant::Inside("auto".into()).environment(None).is_empty());
    for variant in [Variant::Huge("auto:4".parse().expect("settings")), Variant::Planned("a.toml".into())] {
        let set = variant.environment(Some(&inside));
        assert!(set[0].0 == "LD_PRELOAD" && set[0].1.to_string_lossy().ends_with("/x/lib.so"));
        assert_eq!(set[1..], [("LOOKASIDE_HUGEPAGES", "orders".into())]);
        assert!(variant.environment(None).is_empty());
    }
    let text = Variant::Text(CodeBudget::AtMost(4)).environment(Some(&inside));
    assert!(text[0].0 == "LD_PRELOAD" && text[0].1.to_string_lossy().ends_with("/x/lib.so"));
    assert_eq!(text[1..3], [("LOOKASIDE_CODE", "4".into()), ("LOOKASIDE_CODE_REPORT", "/x/report".into())]);
    assert!(Variant::Text(CodeBudget::All).environment(None).is_empty());
    let plans = [("a.toml".into(), (CodeBudget::AtMost(2), "/x/weights".into()))].into();
    let with_plan = PreloadedBaker { code_plans: plans, ..inside };
    let planned = Variant::PlannedText("a.toml".into()).environment(Some(&with_plan));
    assert_eq!((&planned[1], &planned[3].1), (&("LOOKASIDE_CODE", "2".into()), &"/x/weights".into()));
    let inside = with_plan;
    let thp = Variant::Thp.environment(Some(&inside));
    assert!(thp.len() == 1 && thp[0].0 == "GLIBC_TUNABLES");
    assert!(thp[0].1.to_string_lossy().ends_with("glibc.malloc.hugetlb=1"));
}

#[test]
fn each_variant_says_what_it_is_and_whether_huge_pages_are_off() {
    let all = Variant::list("thp,nothp,asis,hugepages:auto:4,hugepages:a.toml,bake:scan,bake:auto,text,text:a.toml")
        .expect("variants");
    let words: std::collections::BTreeSet<&str> = all.iter().map(Variant::words).collect();
    assert!(words.len() == all.len() && words.iter().all(|words| words.len() > 10), "{words:?}");
    use Thp::{Asked, Off, On};
    let expected = [
        Some(Off),
        Some(On),
        Some(Off),
        None,
        Some(Asked),
        Some(Asked),
        Some(Off),
        Some(Off),
        Some(Asked),
        Some(Asked),
    ];
    assert_eq!(all.iter().map(Variant::thp).collect::<Vec<_>>(), expected);
    let inside = hugepages::collapse_side() == Ok(CollapseSide::Inside);
    let needs = all.iter().map(Variant::needs_preload).collect::<Vec<_>>();
    assert_eq!(needs, [false, false, false, false, inside, inside, false, true, true, true]);
}

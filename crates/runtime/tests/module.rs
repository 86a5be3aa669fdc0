//! The kernel module's call, here and in its header: the same numbers and the same structure.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use lookaside_runtime::bake::freestanding::{Walk, DEVICE, VERSION, WALK};
use lookaside_runtime::bake::Settings;

const PROGRAM: &str = r#"
#include "lookaside.h"
#include <stddef.h>
#include <stdio.h>
#define FIELD(name) printf("%s %zu+%zu\n", #name, offsetof(struct lookaside_walk, name), sizeof(((struct lookaside_walk *)0)->name))
int main(void) {
    FIELD(version), FIELD(flags), FIELD(pagemap), FIELD(stride), FIELD(nops), FIELD(steps), FIELD(start), FIELD(len);
    FIELD(next), FIELD(touched), FIELD(present), FIELD(tables), FIELD(huge), FIELD(ended), FIELD(reserved);
    printf("size %zu\ncall %lu\n", sizeof(struct lookaside_walk), (unsigned long)LOOKASIDE_WALK);
    printf("this_version %u\nmax_stride %u\nmax_nops %u\n", LOOKASIDE_VERSION, LOOKASIDE_MAX_STRIDE, LOOKASIDE_MAX_NOPS);
    printf("max_steps %u\ndevice %s\n", LOOKASIDE_MAX_STEPS, LOOKASIDE_DEVICE);
    return 0;
}
"#;

/// What the header says, by name.
fn header() -> Option<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (folder.path().join("abi.c"), folder.path().join("abi"));
    std::fs::write(&source, PROGRAM).expect("a source file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
    let built = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Ok(status) => assert!(status.success(), "the header does not compile"),
        Err(e) => {
            eprintln!("LEFT OUT: gcc is not installed (apt-get install gcc): {e}");
            return None;
        }
    }
    let output = Command::new(&program).output().expect("the program can be started");
    let lines = String::from_utf8(output.stdout).expect("text");
    Some(lines.lines().filter_map(|line| line.split_once(' ')).map(|(a, b)| (a.into(), b.into())).collect())
}

#[test]
fn the_call_is_the_headers() {
    let Some(header) = header() else { return };
    let mut ours: BTreeMap<String, String> = BTreeMap::new();
    macro_rules! fields {
        ($($field:ident)*) => {
            let walk = Walk::default();
            $(ours.insert(stringify!($field).into(),
                format!("{}+{}", offset_of!(Walk, $field), size_of_val(&walk.$field)));)*
        };
    }
    fields!(version flags pagemap stride nops steps start len next touched present tables huge ended reserved);
    ours.insert("size".into(), size_of::<Walk>().to_string());
    ours.insert("call".into(), WALK.to_string());
    ours.insert("this_version".into(), VERSION.to_string());
    ours.insert("device".into(), DEVICE.to_str().expect("text").into());
    let limits = ["max_stride", "max_nops", "max_steps"];
    let rest: BTreeMap<_, _> = header.iter().filter(|(name, _)| !limits.contains(&name.as_str())).collect();
    assert_eq!(rest, ours.iter().collect());
}

#[test]
fn the_limits_are_the_headers() {
    let Some(header) = header() else { return };
    for name in ["stride", "nops"] {
        let most: u64 = header[&format!("max_{name}")].parse().expect("a number");
        let parse = |value: u64| format!("module,{name}={value}").parse::<Settings>();
        parse(most).expect("the greatest");
        assert!(parse(most + 1).expect_err("too much").to_string().contains(&format!("{most}")));
    }
    let most: u32 = header["max_steps"].parse().expect("a number");
    assert!(Walk::chunk(None, 0, 4096, 1, 0).steps <= most);
}

use std::os::unix::fs::PermissionsExt;

use super::*;

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A program of 32 or 64 bits that has nothing but a linker, or not even that.
fn elf(wide: bool, linker: Option<&str>) -> Vec<u8> {
    let path = linker.map_or_else(Vec::new, |linker| [linker.as_bytes(), &[0]].concat());
    let (header, entry) = if wide { (64, 56) } else { (52, 32) };
    let mut bytes = vec![0u8; header + entry];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', if wide { 2 } else { 1 }, 1, 1]);
    // Place, size and number of the entries; then the entry: its kind (PT_INTERP), and place and length of the path.
    let (table, sizes, place, length) = if wide { (32, 54, 8, 32) } else { (28, 42, 4, 16) };
    (bytes[table], bytes[sizes], bytes[sizes + 2]) = (header as u8, entry as u8, u8::from(linker.is_some()));
    bytes[header] = 3;
    (bytes[header + place], bytes[header + length]) = ((header + entry) as u8, path.len() as u8);
    [bytes, path].concat()
}

fn program(elf: &Path, isa: ProgramIsa) -> ProgramFile {
    ProgramFile { elf: elf.into(), is_script: false, isa, is_static: false, privileged: false, records_itself: false }
}

#[test]
fn a_programs_linker_is_read_of_either_width() {
    for wide in [false, true] {
        let read = |bytes: &[u8]| match wide {
            false => interpreter::<FileHeader32<Endianness>>(bytes),
            true => interpreter::<FileHeader64<Endianness>>(bytes),
        };
        assert_eq!(read(&elf(wide, Some("/lib/ld.so"))), Some("/lib/ld.so".into()));
        assert_eq!((read(&elf(wide, None)), read(&elf(!wide, Some("/lib/ld.so"))), read(b"text")), (None, None, None));
    }
}

#[test]
fn the_folder_of_a_programs_libraries_is_found() {
    if std::env::var_os("QEMU_LD_PREFIX").is_some() {
        return eprintln!("LEFT OUT: QEMU_LD_PREFIX says where the libraries are");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("program");
    let of = |wide, linker: Option<&str>, isa, name| {
        fs::write(&file, elf(wide, linker)).unwrap();
        libraries(&program(&file, isa), name)
    };
    let (arm, native) = (ProgramIsa::Foreign("arm"), ProgramIsa::Native);
    assert_eq!(of(false, None, arm, "arm"), Ok(None));
    for (wide, isa, name) in [(false, arm, "arm"), (true, native, "x86_64")] {
        let line = of(wide, Some("/no/such/linker"), isa, name).unwrap_err();
        assert!(line.contains("the program's linker /no/such/linker is not here; set QEMU_LD_PREFIX"), "{line}");
    }
    // One that is here and in no other folder.
    let own = file.to_string_lossy().into_owned();
    assert_eq!(of(false, Some(&own), arm, "arm"), Ok(None));
    assert_eq!(of(true, Some(&own), native, "x86_64"), Ok(None));
    // A static program needs none.
    let is_static = ProgramFile { is_static: true, ..program(&file, arm) };
    fs::write(&file, elf(false, Some("/no/such/linker"))).unwrap();
    assert_eq!(libraries(&is_static, "arm"), Ok(None));
    fs::remove_file(&file).unwrap();
    assert!(libraries(&program(&file, arm), "arm").unwrap_err().starts_with(&own));

    let Some(cross) = ["/usr/arm-linux-gnueabihf", "/usr/arm-linux-gnueabi"]
        .into_iter()
        .map(Path::new)
        .find(|folder| folder.join("lib").exists())
    else {
        return eprintln!("LEFT OUT: no libraries for ARM");
    };
    // Its own folder goes before that of the machine, which is taken of a native program.
    assert_eq!(of(false, Some("/lib"), arm, "arm"), Ok(Some(cross.into())));
    assert_eq!(of(true, Some("/lib"), native, "arm"), Ok(None));
}

#[test]
fn a_program_has_its_own_name_and_words_under_qemu() {
    let command = words(&["name", "one", "two"]);
    let path = Path::new("/bin/program");
    assert_eq!(guest_words(&command, path, None), words(&["-0", "name", "/bin/program", "one", "two"]));
    assert_eq!(
        guest_words(&command, path, Some("/usr/arm".into())),
        words(&["-0", "name", "-L", "/usr/arm", "/bin/program", "one", "two"])
    );
}

#[test]
fn a_plain_run_is_of_32_bits_and_no_script() {
    let (command, log) = (words(&["name", "one"]), Path::new("/tmp/log"));
    let arm = ProgramFile { is_static: true, ..program(Path::new("/bin/program"), ProgramIsa::Foreign("arm")) };
    for isa in ["x86_64", "aarch64", "mips"] {
        let line = plain_qemu_command(&command, &arm, isa, log).unwrap_err();
        assert!(line.starts_with(&format!("is for {isa}: its memory can't be told from QEMU's own")), "{line}");
    }
    let script = ProgramFile { is_script: true, ..arm.clone() };
    assert_eq!(
        plain_qemu_command(&command, &script, "arm", log),
        Err("is a script for arm, which QEMU can't run; name `/bin/program SCRIPT`".into())
    );
    let expected = find("arm").map(|qemu| {
        let rest = words(&["-d", "page", "-D", "/tmp/log", "-0", "name", "/bin/program", "one"]);
        [vec![OsString::from(qemu)], rest].concat()
    });
    assert_eq!(plain_qemu_command(&command, &arm, "arm", log), expected);
}

#[test]
fn a_path_with_the_loaders_separators_is_not_preloaded() {
    for (path, expected) in [("/a/b.so", true), ("/a b/c.so", false), ("/a:b/c.so", false), ("/a,b-c/d.so", true)] {
        assert_eq!(preloadable(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn a_plugin_is_complete_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!((QemuPlugin.name(), QemuPlugin.key().len()), ("qemu", 16));
    assert!(!QemuPlugin.is_complete(folder.path()));
    fs::write(folder.path().join(PLUGIN), "").unwrap();
    assert!(QemuPlugin.is_complete(folder.path()));
}

/// Not a test by itself.
#[test]
fn looks_for_qemu_for_another_test() {
    if let Some(folder) = std::env::var_os("LOOKASIDE_TEST_FIND") {
        println!("found: {:?}, {:?}", find("x86_64"), QemuPlugin.compile(Path::new(&folder)));
    }
}

#[test]
fn a_qemu_of_another_interface_is_refused_and_a_missing_compiler_named() {
    let folder = tempfile::tempdir().unwrap();
    let qemu = folder.path().join("qemu-x86_64");
    let found = || {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "backends::qemu::tests::looks_for_qemu_for_another_test", "--nocapture"])
            .env("LOOKASIDE_TEST_FIND", folder.path())
            .env("PATH", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| Some(line.split_once("found: ")?.1.to_owned())).expect("a line");
        let compiler = "Err(\"no C compiler to build the plugin: apt-get install gcc\")";
        line.strip_suffix(&format!(", {compiler}")).unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    assert_eq!(found(), "Err(\"qemu-x86_64 is not installed: apt-get install qemu-user gcc\")");
    let other = |major| format!("Err(\"qemu-x86_64 is version {major}; the plugin is for versions 6 to 8\")");
    let fits = format!("Ok({:?})", folder.path().canonicalize().unwrap().join("qemu-x86_64"));
    let nothing = "Err(\"qemu-x86_64 --version says no version: apt-get install --reinstall qemu-user\")";
    for (says, expected) in [
        ("qemu-x86_64 version 5.2.0", other(5)),
        ("qemu-x86_64 version 6.0.0", fits.clone()),
        ("qemu-x86_64 version 8.2.1 (Debian 1:8.2.1)", fits),
        ("qemu-x86_64 version 9.0.0", other(9)),
        ("qemu-x86_64 version unknown", nothing.into()),
        ("qemu-x86_64", nothing.into()),
    ] {
        fs::write(&qemu, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found(), expected, "{says}");
    }
}

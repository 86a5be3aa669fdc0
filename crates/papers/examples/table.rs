//! Prints a paper's rows side by side: `cargo run -p lookaside-papers --example table -- pt-baker`.

fn main() -> Result<(), lookaside_papers::PaperError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "pt-baker".into());
    let r = lookaside_papers::reproduce(&name, lookaside_papers::Effort::Usual, &mut |step| eprintln!("{step}"))?;
    println!("{}\nmachine: {}", r.cite, r.machine);
    r.assumptions.iter().for_each(|a| println!("assumed: {a}"));
    for row in &r.rows {
        let ours = row.ours.as_ref().map_or("-".into(), ToString::to_string);
        println!(
            "{:14} | {} | {} | {} {} | {} | {}",
            row.verdict, row.place, row.what, row.published, row.unit, ours, row.note
        );
    }
    println!("{} of {} rows that count hold", r.holding(), r.counted().count());
    Ok(())
}

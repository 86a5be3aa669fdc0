//! The book shows what the program prints.

#[test]
fn the_report_in_the_book_is_the_one_that_is_printed() {
    let book = include_str!("../../../../docs/analyze.md");
    let printed = include_str!("../golden/exact-100.txt");
    assert!(book.contains(printed), "docs/analyze.md shows another report than tests/golden/exact-100.txt");
}

// Tables can be sorted by a click on a column's head. Without this script they stand ranked by cost.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) { other.removeAttribute("aria-sort"); }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
      const rows = [...table.tBodies[0].rows].sort((a, b) => order(key(a), key(b)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}

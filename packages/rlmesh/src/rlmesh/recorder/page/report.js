"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const table = document.getElementById("episodes");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = document.getElementById("filter");
  const outcome = document.getElementById("outcome");
  const workload = document.getElementById("workload");
  const shown = document.getElementById("shown");
  const videos = [...document.querySelectorAll(".videos article")];

  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = new Set();
    let count = 0;
    for (const row of rows) {
      const keep = (!outcome.value || row.dataset.outcome === outcome.value)
        && (!workload.value || row.dataset.workload === workload.value)
        && words.every((word) => row.dataset.text.includes(word));
      row.hidden = !keep;
      if (keep) { count += 1; kept.add(row.id); }
    }
    for (const video of videos) video.hidden = !kept.has(video.dataset.row);
    shown.textContent = count === rows.length ? `${count} episodes` : `${count} of ${rows.length} episodes`;
  };
  for (const control of [text, outcome, workload]) control.addEventListener("input", filter);
  filter();

  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN) ? a.localeCompare(b) : numbers[0] - numbers[1];
  };
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = cell.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => {
        const [left, right] = [value(a, column), value(b, column)];
        const order = compare(left, right);
        return left === "" || right === "" || !down ? order : -order;
      });
      body.append(...rows);
    });
  });
})();

(() => {
  "use strict";
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);

  const root = document.documentElement;
  one(".theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const tip = one("#tip");
  const hide = () => { tip.hidden = true; };
  const show = (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (!mark) { hide(); return; }
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 12, innerWidth - width - 6);
    const top = event.clientY - height - 10;
    tip.style.left = `${Math.max(6, left)}px`;
    tip.style.top = `${top < 6 ? event.clientY + 16 : top}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("click", show);
  document.addEventListener("scroll", hide, true);

  const table = one("#slice-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const tool = (id) => one(`#${id}`);
  const total = Number(table.dataset.total);
  const more = tool("more"), few = 50;
  let all_shown = false;
  const filter = () => {
    const find = tool("find").value.trim().toLowerCase();
    const metric = tool("metric") ? tool("metric").value : "0";
    const word = tool("show") ? tool("show").value : "";
    const kind = tool("by").value;
    let shown = 0;
    for (const row of rows) {
      row.hidden = row.dataset.m !== metric
        || (row.classList.contains("part") && !tool("parts").checked)
        || (row.classList.contains("small") && !tool("small").checked)
        || (word && row.dataset.v !== word)
        || (kind && row.dataset.k !== kind)
        || (find && !row.cells[0].textContent.toLowerCase().includes(find));
      row.classList.toggle("over", !row.hidden && !all_shown && shown >= few);
      shown += !row.hidden;
    }
    more.hidden = all_shown || shown <= few;
    more.textContent = `Show all ${shown.toLocaleString("en")}`;
    tool("count").textContent = `${shown.toLocaleString("en")} of ${total.toLocaleString("en")} ${table.dataset.of}`;
  };
  more.addEventListener("click", () => { all_shown = true; filter(); });
  const about = table.tHead.querySelector("[data-about]");
  if (tool("metric")) tool("metric").addEventListener("input", (event) => {
    (about.firstElementChild || about).textContent = event.target.selectedOptions[0].dataset.head;
  });
  for (const input of all(".tools input, .tools select")) input.addEventListener("input", filter);
  filter();

  const amount = (row, column) => {
    const text = row.cells[column].textContent.trim().replaceAll("\u2212", "-").replaceAll(",", "");
    return /^[+-]?[\d.]/.test(text) ? parseFloat(text) : NaN;
  };
  const sort = (head) => {
    const column = head.cellIndex;
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of all("th", table)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const isText = head.classList.contains("text") || column === 0;
    const keys = new Map(rows.map((row) => [row, isText ? row.cells[column].textContent.trim() : amount(row, column)]));
    const side = ascending ? 1 : -1;
    rows.sort((a, b) => {
      const small = a.classList.contains("small") - b.classList.contains("small");
      if (small) return small;
      const x = keys.get(a), y = keys.get(b);
      if (isText) return side * x.localeCompare(y, "en", { numeric: true });
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return side * (x - y);
    });
    body.append(...rows);
    filter();
  };
  for (const button of all("th button", table)) button.addEventListener("click", () => sort(button.closest("th")));
})();

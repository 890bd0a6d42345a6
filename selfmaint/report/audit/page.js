"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const lines = all("tr.line");
  const buttons = all("button[data-filter]");
  const find = document.getElementById("find");
  const shown = document.getElementById("shown");

  const controls = (line) => all("button.verdict", line);
  const open = (button, isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    document.getElementById(button.getAttribute("aria-controls")).hidden = !isOpen;
  };

  const apply = () => {
    const wanted = buttons.find((b) => b.getAttribute("aria-pressed") === "true").dataset.filter;
    const text = find.value.trim().toLowerCase();
    let count = 0;
    for (const line of lines) {
      const fits =
        (wanted === "all" || line.dataset.words.split(" ").includes(wanted)) && line.dataset.text.includes(text);
      line.hidden = !fits;
      count += fits ? 1 : 0;
      if (!fits) controls(line).forEach((button) => open(button, false));
    }
    for (const body of all("table.matrix > tbody")) {
      const first = all("tr.line", body).find((line) => !line.hidden);
      body.hidden = !first;
      all("th.viewname", body).forEach((th) => th.classList.toggle("again", th.parentElement !== first));
    }
    shown.textContent = `${count} of ${lines.length} rows`;
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      apply();
    });
  }
  find.addEventListener("input", apply);

  for (const button of all("button.verdict")) {
    button.addEventListener("click", () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      controls(button.closest("tr")).forEach((other) => open(other, other === button && !isOpen));
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") all('button.verdict[aria-expanded="true"]').forEach((button) => open(button, false));
  });

  const drawing = document.querySelector("svg.drawing");
  const light = (view) => {
    drawing.classList.toggle("focused", view !== null);
    all("path.edge", drawing).forEach((edge) => edge.classList.toggle("lit", edge.dataset.view === view));
  };
  for (const view of all("g.view", drawing)) {
    for (const event of ["mouseenter", "focus"]) view.addEventListener(event, () => light(view.dataset.view));
    for (const event of ["mouseleave", "blur"]) view.addEventListener(event, () => light(null));
  }

  let before = [];
  window.addEventListener("beforeprint", () => {
    before = all("tr.more.paper").filter((row) => row.hidden);
    before.forEach((row) => { row.hidden = false; });
  });
  window.addEventListener("afterprint", () => before.forEach((row) => { row.hidden = true; }));
  apply();
})();

(() => {
  "use strict";
  const rows = [...document.querySelectorAll(".tree .row")];
  const items = rows.length ? rows : [...document.querySelectorAll("table tr")].filter(row => row.querySelector("td"));
  const folds = [...document.querySelectorAll("details")];
  const made = (tag, words) => Object.assign(document.createElement(tag), words);
  const input = made("input", {type: "search", placeholder: "search (/)", ariaLabel: "search"});
  const found = made("output", {});
  const all = open => () => folds.forEach(fold => { fold.open = open; });
  const tools = made("div", {className: "tools"});
  tools.setAttribute("role", "search");
  if (items.length) tools.append(found, input);
  if (folds.length) {
    tools.append(made("button", {type: "button", textContent: "unfold all", onclick: all(true)}),
      made("button", {type: "button", textContent: "fold all", onclick: all(false)}));
  }
  document.querySelector("header").append(tools);

  const heads = [...document.querySelectorAll("table th")].map(head => head.textContent);
  const choices = [];
  const choose = (name, options, fits) => {
    const column = heads.indexOf(name);
    if (rows.length || column < 0 || document.querySelectorAll("table").length > 1) return;
    const select = made("select", {ariaLabel: name});
    select.append(...options(items.map(item => item.cells[column].textContent)).map(([value, label]) =>
      made("option", {value, textContent: label})));
    select.addEventListener("change", () => search());
    choices.push(item => !select.value || fits(item.cells[column].textContent, select.value));
    tools.prepend(select);
  };
  const dollars = text => parseFloat(text.replace(/[^0-9.]/g, "")) || 0;
  choose("cost", () => [["", "any cost"], ["0.1", "≥ $0.10"], ["1", "≥ $1"], ["10", "≥ $10"]],
    (text, least) => dollars(text) >= Number(least));
  choose("status", texts => [["", "any status"], ...[...new Set(texts)].sort().map(text => [text, text])],
    (text, wanted) => text === wanted);

  const texts = new Map();
  const text = item => {
    if (!texts.has(item)) {
      const own = rows.length ? [...item.children].filter(child => !child.classList.contains("row")) : [item];
      texts.set(item, own.map(child => child.textContent).join(" ").toLowerCase());
    }
    return texts.get(item);
  };
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = items.filter(item => words.every(word => text(item).includes(word)) && choices.every(fits => fits(item)));
    const shown = new Set(hits);
    for (const hit of words.length ? hits : []) {
      for (let above = hit.parentElement?.closest(".row"); above && !shown.has(above);
        above = above.parentElement?.closest(".row")) {
        shown.add(above);
        above.open = true;
      }
    }
    items.forEach(item => { item.hidden = !shown.has(item); });
    found.textContent = hits.length < items.length ? `${hits.length} of ${items.length}` : "";
  };
  let timer = 0;
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
    if (event.key === "Escape" && document.activeElement === input) { input.value = ""; search(); input.blur(); }
  });

  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();

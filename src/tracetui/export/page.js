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
    const hits = items.filter(item => words.every(word => text(item).includes(word)));
    const shown = new Set(hits);
    for (const hit of words.length ? hits : []) {
      for (let above = hit.parentElement?.closest(".row"); above && !shown.has(above);
        above = above.parentElement?.closest(".row")) {
        shown.add(above);
        above.open = true;
      }
    }
    items.forEach(item => { item.hidden = !shown.has(item); });
    found.textContent = words.length ? `${hits.length} of ${items.length}` : "";
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

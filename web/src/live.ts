// The live page: the server sends a new <main> whenever the run has moved on.
export function listen(changed: () => void): void {
  const events = new EventSource("events");
  const say = (text: string) => {
    const place = document.getElementById("live");
    if (place !== null) place.textContent = text;
  };
  events.addEventListener("open", () => say("live"));
  events.addEventListener("error", () => say("connection lost, trying again"));
  events.addEventListener("progress", (event) => say((event as MessageEvent<string>).data));
  events.addEventListener("main", (event) => {
    const main = document.getElementById("main");
    if (main === null) return;
    const open = new Set([...main.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
    const chosen = new Map([...main.querySelectorAll("select")].map((s) => [s.getAttribute("aria-label"), s.value]));
    const focus = place(main);
    main.innerHTML = JSON.parse((event as MessageEvent<string>).data) as string;
    for (const summary of main.querySelectorAll("summary")) {
      if (open.has(summary.textContent)) summary.parentElement?.setAttribute("open", "");
    }
    for (const select of main.querySelectorAll("select")) {
      const value = chosen.get(select.getAttribute("aria-label"));
      if (value === undefined || select.options[Number(value)] === undefined) continue;
      select.value = value;
      select.closest("figure")?.querySelector(".plot")?.setAttribute("data-panel", value);
    }
    if (focus !== "") main.querySelector<HTMLElement>(focus)?.focus({ preventScroll: true });
    changed();
  });
  events.addEventListener("end", () => {
    events.close();
    say("the run has ended");
    document.querySelector(".live")?.classList.add("ended");
  });
}

/** Where the focus is within an element, in a form that outlives its content. */
function place(main: HTMLElement): string {
  const at = document.activeElement;
  if (at === null || at === main || !main.contains(at)) return "";
  const path: string[] = [];
  for (let e: Element = at; e !== main && e.parentElement !== null; e = e.parentElement) {
    if (e.id !== "") return [`#${CSS.escape(e.id)}`, ...path].join(" > ");
    path.unshift(`:nth-child(${[...e.parentElement.children].indexOf(e) + 1})`);
  }
  return "";
}

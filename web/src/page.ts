// The page: everything that can be read is in the HTML already; this draws the
// pictures when they come near the window, all of them for paper, and on the live
// page takes in a new <main> when the run has moved on.
import { Figure, type FigureData } from "./figure";
import { listen } from "./live";
import { save } from "./save";
import { followTheme } from "./theme";

let figures: Figure[] = [];
let near: IntersectionObserver | undefined;

async function start(): Promise<void> {
  for (const figure of figures) figure.clear();
  near?.disconnect();
  near = undefined;
  const text = document.getElementById("figures-data")?.textContent ?? "[]";
  const data = unpack(JSON.parse(text) as PackedFigure[]);
  figures = [];
  for (const item of data) {
    const root = document.getElementById(`fig-${item.id}`);
    if (root === null) continue;
    figures.push(new Figure(root, item));
    for (const button of root.querySelectorAll<HTMLButtonElement>("[data-save]")) {
      button.addEventListener("click", () => void save(item, root, button.dataset["save"] ?? "svg"));
    }
  }
  for (const figure of figures) figure.reserve();
  await drawSeen();
  watch();
  document.documentElement.dataset["drawn"] = String(figures.length);
  setTimeout(drawIdle, idleAfter);
}

/** How long the reader has the machine for himself, in ms, before the rest is drawn. */
const idleAfter = 700;

/** Draws what is out of sight, one figure at a time while nothing else is to do: a picture of the whole page has all. */
function drawIdle(): void {
  const rest = figures.values();
  const step = (): void => {
    for (const figure of rest) {
      if (!figure.waits()) continue;
      figure.ensure();
      requestIdleCallback(step, { timeout: 200 });
      return;
    }
  };
  step();
}

/** A figure as the page has it: parts that all panels share, or panels of another figure, stand once. */
interface PackedFigure extends FigureData { shared?: Record<string, unknown>; like?: string }

function unpack(packed: PackedFigure[]): FigureData[] {
  for (const figure of packed) figure.panels = figure.panels.map((panel) => ({ ...panel, spec: { ...figure.shared, ...panel.spec } }));
  for (const figure of packed) figure.panels = packed.find((other) => other.id === figure.like)?.panels ?? figure.panels;
  return packed;
}

/** Draws what is in the window; the rest waits until it comes near. */
async function drawSeen(): Promise<void> {
  for (const figure of figures) {
    if (figure.seen()) figure.ensure();
    await new Promise((next) => setTimeout(next)); // let the page breathe between figures
  }
}

function watch(): void {
  near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) figures.find((figure) => figure.root === entry.target)?.ensure();
    }
  }, { rootMargin: "600px 0px" });
  for (const figure of figures) near.observe(figure.root);
}

async function again(): Promise<void> {
  near?.disconnect();
  for (const figure of figures) figure.spoil();
  await drawSeen();
  watch();
  drawIdle();
}

let width = innerWidth;
let waiting: ReturnType<typeof setTimeout> | undefined;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => void again(), 150);
});

followTheme(() => void again(), () => figures.forEach((figure) => figure.draw()));
addEventListener("beforeprint", () => figures.forEach((figure) => figure.ensure()));
void start();
if (document.body.hasAttribute("data-live")) listen(() => void start());

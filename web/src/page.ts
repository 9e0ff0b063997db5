// The page: everything that can be read is in the HTML already; this draws the
// pictures, and on the live page takes in a new <main> when the run has moved on.
import { Figure, type FigureData } from "./figure";
import { listen } from "./live";
import { save } from "./save";
import { followTheme } from "./theme";

let figures: Figure[] = [];

async function start(): Promise<void> {
  for (const figure of figures) figure.clear();
  const text = document.getElementById("figures-data")?.textContent ?? "[]";
  const data = JSON.parse(text) as FigureData[];
  figures = [];
  for (const item of data) {
    const root = document.getElementById(`fig-${item.id}`);
    if (root === null) continue;
    figures.push(new Figure(root, item));
    for (const button of root.querySelectorAll<HTMLButtonElement>("[data-save]")) {
      button.addEventListener("click", () => void save(item, root, button.dataset["save"] ?? "svg"));
    }
  }
  await drawAll();
  document.documentElement.dataset["drawn"] = String(figures.length);
}

async function drawAll(): Promise<void> {
  for (const figure of figures) {
    figure.draw();
    await new Promise((next) => setTimeout(next)); // let the page breathe between figures
  }
}

let width = innerWidth;
let waiting: ReturnType<typeof setTimeout> | undefined;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(() => void drawAll(), 150);
});

followTheme(() => void drawAll(), () => figures.forEach((figure) => figure.draw()));
void start();
if (document.body.hasAttribute("data-live")) listen(() => void start());

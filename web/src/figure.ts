// One figure: its panels, redrawn when the width, the theme or the choice changes.
import { viewOf, type Spec } from "./chart";
import { tooltip } from "./tooltip";

export interface Panel { title: string; spec: Spec }
export interface Legend { label: string; colour: string; mark: string }
export interface FigureData { id: string; title: string; reads: string; n: string; better: string; choose: string; panels: Panel[]; legend: Legend[] }

/** Plots are at least so wide, in CSS pixels. */
const narrowest = 40;

interface Drawn { finalize(): void }

export class Figure {
  private views: Drawn[] = [];
  private stale = false; // drawn for another width or theme

  constructor(readonly root: HTMLElement, readonly data: FigureData) {
    const select = root.querySelector("select");
    select?.addEventListener("change", () => {
      root.querySelector<HTMLElement>(".plot")?.setAttribute("data-panel", select.value);
      this.draw();
    });
  }

  private plots(): HTMLElement[] {
    return [...this.root.querySelectorAll<HTMLElement>(".plot")];
  }

  private panelOf(plot: HTMLElement): Panel | undefined {
    return this.data.panels[Number(plot.dataset["panel"])];
  }

  /** Keeps the place of what is not drawn yet, so that drawing moves nothing. */
  reserve(): void {
    for (const plot of this.plots()) {
      const height = this.panelOf(plot)?.spec["height"];
      if (typeof height === "number") plot.style.minHeight = `${height}px`;
    }
  }

  /** Whether any part of the figure is in the window. */
  seen(): boolean {
    const box = this.root.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  }

  /** Whether the figure has a place on the page, which those in closed details have not, and is not drawn. */
  waits(): boolean {
    return (this.views.length === 0 || this.stale) && this.plots().some((plot) => plot.clientWidth >= narrowest);
  }

  /** Draws the figure unless it is drawn. */
  ensure(): void {
    if (this.views.length === 0 || this.stale) this.draw();
  }

  /** Says that the drawing no longer fits; it stays until there is another. */
  spoil(): void {
    this.stale = true;
  }

  /** Draws all panels anew. Data are at hand, so nothing has to be awaited. */
  draw(): void {
    this.clear();
    this.stale = false;
    const style = getComputedStyle(this.root);
    for (const plot of this.plots()) {
      const panel = this.panelOf(plot);
      const width = Math.floor(plot.clientWidth);
      if (panel === undefined || width < narrowest) continue;
      const view = viewOf({ ...sized(panel.spec, width, this.root.closest(".hero") !== null) }, style, plot);
      view.tooltip(tooltip);
      view.run();
      plot.style.minHeight = "";
      // The specification's description labels the plot; the drawing itself is decoration to a screen reader.
      plot.querySelector("svg")?.setAttribute("aria-hidden", "true");
      this.views.push(view);
    }
  }

  clear(): void {
    if (this.views.length === 0) return;
    for (const plot of this.plots()) plot.style.minHeight = `${plot.clientHeight}px`;
    for (const view of this.views) view.finalize();
    this.views = [];
    for (const plot of this.plots()) plot.replaceChildren();
  }
}

/** Gives a panel's view its width and, unless it brings one, its height. */
export function sized(spec: Spec, width: number, hero = false): Spec {
  const height = spec["height"] ?? (hero ? Math.min(340, Math.max(220, width * 0.6)) : Math.min(300, Math.max(190, width * 0.62)));
  return { ...spec, width, height, autosize: { type: "fit-x", contains: "padding" } };
}

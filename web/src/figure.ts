// One figure: its panels, redrawn when the width, the theme or the choice changes.
import { viewOf, type Spec } from "./chart";
import { tooltip } from "./tooltip";

export interface Panel { title: string; spec: Spec }
export interface Legend { label: string; colour: string; mark: string }
export interface FigureData { id: string; title: string; reads: string; n: string; choose: string; panels: Panel[]; legend: Legend[] }

interface Drawn { finalize(): void }

export class Figure {
  private views: Drawn[] = [];

  constructor(readonly root: HTMLElement, readonly data: FigureData) {
    const select = root.querySelector("select");
    select?.addEventListener("change", () => {
      root.querySelector<HTMLElement>(".plot")?.setAttribute("data-panel", select.value);
      this.draw();
    });
  }

  /** Draws all panels anew. Data are at hand, so nothing has to be awaited. */
  draw(): void {
    this.clear();
    const style = getComputedStyle(this.root);
    for (const plot of this.root.querySelectorAll<HTMLElement>(".plot")) {
      const panel = this.data.panels[Number(plot.dataset["panel"])];
      const width = Math.floor(plot.clientWidth);
      if (panel === undefined || width < 40) continue;
      const view = viewOf({ ...sized(panel.spec, width, this.root.closest(".hero") !== null) }, style, plot);
      view.tooltip(tooltip);
      view.run();
      // The specification's description labels the plot; the drawing itself is decoration to a screen reader.
      plot.querySelector("svg")?.setAttribute("aria-hidden", "true");
      this.views.push(view);
    }
  }

  clear(): void {
    for (const view of this.views) view.finalize();
    this.views = [];
  }
}

/** Gives a panel's view its width and, unless it brings one, its height. */
export function sized(spec: Spec, width: number, hero = false): Spec {
  const height = spec["height"] ?? (hero ? Math.min(340, Math.max(220, width * 0.6)) : Math.min(300, Math.max(190, width * 0.62)));
  return { ...spec, width, height, autosize: { type: "fit-x", contains: "padding" } };
}

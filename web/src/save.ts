// Downloads: a figure as one SVG or PNG with its title and legend, its table as CSV.
import { viewOf, type Spec } from "./chart";
import { sized, type FigureData } from "./figure";

export async function save(figure: FigureData, root: HTMLElement, kind: string): Promise<void> {
  const name = `plimsoll-${figure.id}.${kind}`;
  if (kind === "csv") {
    const table = root.querySelector("table");
    if (table !== null) offer(name, new Blob([csv(table)], { type: "text/csv" }));
    return;
  }
  const view = viewOf(whole(figure, root), getComputedStyle(root));
  view.background(getComputedStyle(root).getPropertyValue("--paper").trim());
  await view.runAsync();
  if (kind === "svg") offer(name, new Blob([await view.toSVG()], { type: "image/svg+xml" }));
  else {
    const canvas = await view.toCanvas(2) as unknown as HTMLCanvasElement;
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob !== null) offer(name, blob);
  }
  view.finalize();
}

/** All panels of a figure, or the chosen one, as one specification. */
function whole(figure: FigureData, root: HTMLElement): Spec {
  const chosen = figure.choose === "" ? figure.panels : figure.panels.filter((_, i) => String(i) === root.querySelector<HTMLElement>(".plot")?.dataset["panel"]);
  const columns = Math.min(3, chosen.length);
  const legend = figure.legend.map((entry, i) => ({ ...entry, x: i }));
  const key: Spec = {
    width: 130 * legend.length, height: 16, data: { values: legend },
    encoding: { x: { field: "x", type: "quantitative", axis: null, scale: { domain: [0, legend.length], nice: false } } },
    layer: [
      { mark: { type: "point", filled: true, size: 60 }, encoding: { color: { field: "colour", type: "nominal", scale: null }, shape: { field: "shape", type: "nominal", scale: null } } },
      { mark: { type: "text", align: "left", dx: 10, baseline: "middle" }, encoding: { text: { field: "label" } } },
    ],
    view: { stroke: null },
  };
  for (const entry of legend) (entry as Spec)["shape"] = { bar: "square", dash: "stroke", hollow: "circle" }[entry.mark] ?? entry.mark;
  return {
    title: { text: figure.title, subtitle: figure.n },
    vconcat: [
      ...(legend.length > 0 ? [key] : []),
      { columns, concat: chosen.map((panel) => {
        const { autosize: _, $schema: __, ...spec } = sized(panel.spec, columns === 1 ? 720 : 340);
        return panel.title === "" ? spec : { ...spec, title: { text: panel.title, fontSize: 12 } };
      }) },
    ],
  };
}

function csv(table: HTMLTableElement): string {
  const quote = (s: string) => (/[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
  return [...table.rows]
    .map((row) => [...row.cells].map((cell) => quote(cell.dataset["v"] ?? cell.textContent?.trim() ?? "")).join(","))
    .join("\n") + "\n";
}

function offer(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

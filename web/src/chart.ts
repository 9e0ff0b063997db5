// Draws Vega-Lite specifications. Expressions run in Vega's interpreter, never
// through eval, and nothing is ever loaded: the page's policy forbids both.
import * as vega from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";

export type Spec = Record<string, unknown>;

/** Replaces "var(--name)" by the value the element's theme gives it. */
export function resolveColours(value: unknown, style: CSSStyleDeclaration): unknown {
  if (typeof value === "string") {
    const name = /^var\((--[a-z0-9-]+)\)$/.exec(value)?.[1];
    return name === undefined ? value : style.getPropertyValue(name).trim();
  }
  if (Array.isArray(value)) return value.map((v) => resolveColours(v, style));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolveColours(v, style)]));
  }
  return value;
}

function config(style: CSSStyleDeclaration): Spec {
  const get = (name: string) => style.getPropertyValue(name).trim();
  const font = get("--sans");
  const [ink, soft, line] = [get("--ink"), get("--soft"), get("--line")];
  return {
    background: "transparent",
    font,
    padding: { left: 2, right: 6, top: 4, bottom: 2 },
    view: { stroke: null },
    axis: {
      labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
      labelFont: font, titleFont: font, labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal",
      labelPadding: 5, titlePadding: 8, labelLimit: 220,
    },
    axisY: { domain: false, ticks: false, gridDash: [1, 3], gridColor: get("--grid") || line },
    axisX: { grid: false, tickSize: 4 },
    header: { labelColor: soft, labelFont: font, labelFontSize: 12, titleColor: ink },
    legend: { labelColor: soft, titleColor: soft, labelFont: font, titleFont: font },
    title: { color: ink, font, anchor: "start", fontWeight: 600, fontSize: 13 },
    text: { color: ink, font },
  };
}

// Nothing may be loaded: data are in the specification.
const loader = {
  ...vega.loader(),
  load: () => Promise.reject(new Error("the page loads nothing")),
  sanitize: () => Promise.reject(new Error("the page loads nothing")),
};

/** Makes a view of a specification in the colours of a theme. */
export function viewOf(spec: Spec, style: CSSStyleDeclaration, container?: HTMLElement): vega.View {
  const themed = resolveColours(spec, style) as TopLevelSpec;
  const compiled = compile(themed, { config: config(style) as never }).spec;
  const runtime = vega.parse(compiled, undefined, { ast: true });
  const options: Record<string, unknown> = { expr: expressionInterpreter, loader, logLevel: vega.Error, renderer: "svg", hover: false };
  if (container !== undefined) options["container"] = container;
  return new vega.View(runtime, options as never);
}

// Light, dark, or as the system says; the choice holds for this view only, so
// that nothing is stored. Paper is always light.
export function followTheme(changed: () => void, changedAtOnce: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const apply = (theme: string) => {
    root.dataset["theme"] = theme;
    changed();
  };
  root.dataset["theme"] = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => apply(dark.matches ? "dark" : "light"));
  document.getElementById("theme")?.addEventListener("click", () => apply(root.dataset["theme"] === "dark" ? "light" : "dark"));

  let before: string | undefined;
  addEventListener("beforeprint", () => {
    before = root.dataset["theme"];
    if (before === "light") return;
    root.dataset["theme"] = "light";
    changedAtOnce();
  });
  addEventListener("afterprint", () => {
    if (before !== undefined && before !== "light") apply(before);
  });
}

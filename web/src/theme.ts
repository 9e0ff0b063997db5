// Light, dark, or as the system says; the choice holds for this view only, so
// that nothing is stored. Paper is always light.
export function followTheme(changed: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (theme: string) => {
    document.documentElement.dataset["theme"] = theme;
    changed();
  };
  const root = document.documentElement;
  root.dataset["theme"] = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => apply(dark.matches ? "dark" : "light"));
  document.getElementById("theme")?.addEventListener("click", () => apply(root.dataset["theme"] === "dark" ? "light" : "dark"));
}

// A tooltip of plain text; the rows of every figure bring their own words.
let element: HTMLElement | undefined;

export function tooltip(_handler: unknown, event: MouseEvent, _item: unknown, value: unknown): void {
  const text = words(value);
  if (text === "") {
    element?.remove();
    element = undefined;
    return;
  }
  if (element === undefined) {
    element = document.createElement("div");
    element.className = "tip";
    document.body.append(element);
  }
  element.textContent = text;
  const box = element.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
  element.style.left = `${Math.max(8, x)}px`;
  element.style.top = `${y}px`;
}

function words(value: unknown): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "object") return Object.values(value).join(", ");
  return String(value);
}

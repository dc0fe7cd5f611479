// Starts the page's program. A file of its own, since the page's policy allows no inline script.
import init from "./blockyard-web.js";

try {
  // Before the program runs, so that a chosen theme does not flash up late.
  const theme = localStorage.getItem("blockyard.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden: the system's colors it is.
}

function tell(text) {
  const message = document.createElement("p");
  message.className = "message is-error crash";
  message.setAttribute("role", "alert");
  message.textContent = text;
  document.body.append(message);
}

// A program that trapped does not answer any more: say so instead of standing still.
addEventListener("error", ({ error }) => {
  if (error instanceof WebAssembly.RuntimeError) tell("Blockyard stopped working. Reload the page to go on.");
});

try {
  await init({ module_or_path: "./blockyard-web_bg.wasm" });
} catch (error) {
  document.getElementById("app").textContent = "";
  tell(`Blockyard could not start: ${error.message}`);
  throw error;
}

// Starts the page's program. This is a file of its own because the page's content security policy allows no inline script.
import init from "./blockyard-web.js";

try {
  // The theme is set before the program runs, so that the page does not appear in other colors first.
  const theme = localStorage.getItem("blockyard.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // The reader has forbidden storage. The page uses the system's colors.
}

function showError(text) {
  const message = document.createElement("p");
  message.className = "message is-error crash";
  message.setAttribute("role", "alert");
  message.textContent = text;
  document.body.append(message);
}

// After a trap the program does not run any more, so the page says that it stopped.
addEventListener("error", ({ error }) => {
  if (error instanceof WebAssembly.RuntimeError) showError("Blockyard stopped working. Reload the page to go on.");
});

// Figures are drawn on canvases, which do not wait for a font. A font that does not come keeps nobody from the page.
const faces = ['400 13px "Noto Sans"', '600 13px "Noto Sans"', '400 13px "Noto Sans Mono"'];
const patience = new Promise((done) => setTimeout(done, 3000));
await Promise.race([Promise.allSettled(faces.map((face) => document.fonts.load(face))), patience]);

try {
  await init({ module_or_path: "./blockyard-web_bg.wasm" });
} catch (error) {
  document.getElementById("app").textContent = "";
  showError(`Blockyard could not start: ${error.message}`);
  throw error;
}

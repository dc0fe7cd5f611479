// Starts the page's program. A file of its own, since the page's policy allows no inline script.
import init from "./blockyard-web.js";

await init({ module_or_path: "./blockyard-web_bg.wasm" });

// All files of the page lie in this one, packed. Whoever fetches one gets it from here, so nothing is asked of a network.
const parts = new Map(
  Array.from(document.querySelectorAll("script[data-file]"), (part) => [part.dataset.file, part]),
);

const typeOf = (name) =>
  name.endsWith(".wasm") ? "application/wasm" : name.endsWith(".js") ? "text/javascript" : "application/octet-stream";

function response(name) {
  const part = parts.get(name);
  if (!part) return new Response(null, { status: 404 });
  const text = atob(part.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = text.charCodeAt(at);
  let body = new Blob([bytes]).stream();
  if ("packed" in part.dataset) body = body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(body, { headers: { "Content-Type": typeOf(name) } });
}

window.fetch = async (address) => response(decodeURIComponent(String(address).replace(/^\.\//, "")));

// A module whose own imports are files of the page too: one for each file, however many modules import it.
const modules = new Map();

function moduleUrl(name) {
  if (!modules.has(name)) modules.set(name, newModuleUrl(name));
  return modules.get(name);
}

async function newModuleUrl(name) {
  let text = await response(name).text();
  for (const [whole, other] of text.matchAll(/from "\.\/([\w./-]+\.js)"/g)) {
    if (parts.has(other)) text = text.replaceAll(whole, `from ${JSON.stringify(await moduleUrl(other))}`);
  }
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

try {
  await import(await moduleUrl("boot.js"));
} catch (error) {
  document.getElementById("app").textContent = `Blockyard could not start in this browser: ${error.message}`;
  throw error;
}

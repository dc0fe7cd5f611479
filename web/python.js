// A worker that runs one Python program. The first message has the files of Python, and Python starts at once. The second message is the
// program's job; "started" answers it, then the replies of the program, as bytes.
self.onmessage = ({ data }) => {
  const python = start(data);
  // An error is reported when there is a job.
  python.catch(() => {});
  self.onmessage = async ({ data }) => {
    try {
      const run = await python;
      self.postMessage("started");
      run(data, (reply) => self.postMessage(reply));
    } catch (error) {
      // An exception here would only reject the promise of this function. An exception in a timer reaches the page as an error event.
      setTimeout(() => { throw error; });
    }
  };
};

// A program's own data may have 2 GiB: half of the memory that WebAssembly may have, so that Python raises a `MemoryError` before a browser
// or a phone ends the whole tab.
const MAX_PAGES = 32768;

// The place of our extension and our packages in Python's file system.
const EXTENSION = "/lib/blockyard/_blockyard.abi3.so";
const PACKAGES = "/lib/torch.zip";

async function start({ loader, script, code, extension, library, packages }) {
  const { Memory } = WebAssembly;
  WebAssembly.Memory = function ({ initial, maximum }) {
    return new Memory({ initial, maximum: Math.min(maximum, MAX_PAGES) });
  };
  // Pyodide fetches two files, the standard library and its code. The page has fetched both, and has compiled the code.
  self.fetch = async (address) => new Response(`${address}`.endsWith(".zip") ? library : null);
  WebAssembly.instantiateStreaming = async (_, imports) => ({ module: code, instance: await WebAssembly.instantiate(code, imports) });
  const [{ loadPyodide }] = await Promise.all([import(loader), import(script)]);
  const python = await loadPyodide({
    // Nothing is fetched from this address.
    indexURL: "https://python.invalid/",
    stdLibURL: "https://python.invalid/library.zip",
    lockFileContents: { info: { abi_version: "2025_0", arch: "wasm32", platform: "emscripten_4_0_9", python: "3.13.2", version: "0.29.5" }, packages: {} },
    // The same program does the same in every run.
    env: { PYTHONHASHSEED: "0" },
    // A program reaches nothing of the browser.
    jsglobals: {},
  });
  delete self.fetch;
  python.unregisterJsModule("js");
  python.unregisterJsModule("pyodide_js");
  python.FS.mkdirTree("/lib/blockyard");
  python.FS.writeFile(PACKAGES, packages);
  // The extension is compiled already: Python finds an empty file, and its code here.
  python.FS.writeFile(EXTENSION, new Uint8Array());
  const { _module } = python;
  _module.preloadedWasm[EXTENSION] = await _module.loadWebAssemblyModule(extension, { loadAsync: true, nodelete: true }, EXTENSION, {});
  return python.runPython(BEGIN);
}

const BEGIN = `
import sys

sys.path[:0] = ["/lib/blockyard", "${PACKAGES}/lib"]

import _blockyard
import _run
from pyodide.ffi import to_js

run_message = _run.prepare_page()


def run(job, post):
    run_message(job.to_bytes(), lambda reply: post(to_js(reply)))


run
`;

// Runs `pack.py` beside it in the page's own Python, in Node: compiled Python is read only by the release of Python that compiled it.
// Arguments: the folder of Pyodide, the folder with the folders of our Python, that of the package `blockyard_keepers`,
// the folder that the archives are written to.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [pyodide, ours, keepers, out] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
// The place of an expression in its line is for tracebacks that show the line. Those of the library show none.
const python = await loadPyodide({ indexURL: `${pyodide}/`, env: { PYTHONHASHSEED: "0", PYTHONNODEBUGRANGES: "1" } });
const folders = { "/pyodide": pyodide, "/ours": ours, "/keepers": keepers, "/replaced": fileURLToPath(new URL("library", import.meta.url)) };
for (const [place, folder] of Object.entries(folders)) python.mountNodeFS(place, folder);
python.runPython(readFileSync(new URL("pack.py", import.meta.url), "utf8"));
for (const name of ["library.zip", "torch.zip"]) writeFileSync(`${out}/${name}`, python.FS.readFile(name));

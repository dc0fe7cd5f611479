// Lets the browser keep the whole page, so that it opens without a network after one visit. The page works without this, too.
// `data-offline` says how far the browser is: "storing", "ready", or nothing where it keeps nothing.
// `blockyard open` serves the page for one file and says `once`: nothing is kept there.
if ("serviceWorker" in navigator && !new URLSearchParams(location.search).has("once")) {
  const { serviceWorker } = navigator;
  const say = (state) => (document.documentElement.dataset.offline = state);
  say("storing");
  // A worker is active once it has stored all files.
  serviceWorker.ready.then(() => say("ready"));
  // What is shown comes first, and what the reader does at once.
  const register = () => serviceWorker.register("./service-worker.js").catch(() => say(""));
  const rest = () => setTimeout(register, 4000);
  if (document.readyState === "complete") rest();
  else addEventListener("load", rest);
}

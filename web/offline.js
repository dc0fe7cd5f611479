// Lets the browser keep the whole site, so that it opens without a network. The page works without this, too.
if ("serviceWorker" in navigator) {
  // What is shown comes first.
  const register = () => navigator.serviceWorker.register("./service-worker.js").catch(() => undefined);
  if (document.readyState === "complete") setTimeout(register, 2000);
  else addEventListener("load", () => setTimeout(register, 2000));
}

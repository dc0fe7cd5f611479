// Lets the browser keep the whole page, so that it opens without a network after one visit. The page works without this, too.
// `blockyard open` serves the page for one file and says `once`: nothing is kept there.
if ("serviceWorker" in navigator && !new URLSearchParams(location.search).has("once")) {
  // What is shown comes first, and what the reader does at once.
  const register = () => navigator.serviceWorker.register("./service-worker.js").catch(() => undefined);
  const rest = () => setTimeout(register, 4000);
  if (document.readyState === "complete") rest();
  else addEventListener("load", rest);
}

// Keeps all files of one version of the page, and of files that lie beside it. Whoever has a network gets the files from there; without one, or with one that does not
// answer, they come from here.
const PATIENCE_MILLIS = 3000;
const name = (version) => `blockyard ${registration.scope} ${version}`;

addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(name(VERSION));
    // One after the other: the page that is open may be fetching, too.
    for (const file of FILES) await cache.add(new Request(file, { cache: "no-cache" }));
    await skipWaiting();
  };
  event.waitUntil(keep());
});

addEventListener("activate", (event) => {
  const forget = async () => {
    const ours = (await caches.keys()).filter((key) => key.startsWith(name("")));
    await Promise.all(ours.filter((key) => key !== name(VERSION)).map((key) => caches.delete(key)));
    await clients.claim();
  };
  event.waitUntil(forget());
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(registration.scope)) return;
  const answer = async () => {
    const cache = await caches.open(name(VERSION));
    const kept = await cache.match(request, { ignoreSearch: true });
    if (!kept) return fetch(request);
    const patience = new Promise((done) => setTimeout(() => done(kept), PATIENCE_MILLIS));
    return Promise.race([fetch(request).catch(() => kept), patience]);
  };
  event.respondWith(answer());
});

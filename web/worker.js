// A worker runs a module of its own: it is handed the code, so it needs no network.
self.onmessage = async ({ data }) => {
  self.onmessage = null;
  try {
    const worker = await import(data.script);
    await worker.default({ module_or_path: data.module });
    worker.worker_main();
    self.postMessage("ready");
  } catch (error) {
    // Thrown from here it would end as a silent rejection; thrown from a timer the page hears of it.
    setTimeout(() => { throw error; });
  }
};

// The device over WebGPU is a module of its own, called by the page's when a job needs it.
self.openGpu = async (script, wasm) => {
  const gpu = await import(script);
  await gpu.default({ module_or_path: wasm });
  return gpu.open();
};

// Every worker starts with this script. The first message has the code of the worker's module, so that the worker needs no network.
self.onmessage = async ({ data }) => {
  self.onmessage = null;
  try {
    const worker = await import(data.script);
    await worker.default({ module_or_path: data.module });
    worker.worker_main();
    self.postMessage("ready");
  } catch (error) {
    // An exception here would only reject the promise of this function. An exception in a timer reaches the page as an error event.
    setTimeout(() => { throw error; });
  }
};

// The device over WebGPU is a module of its own. The worker calls this function when a job needs the device.
self.openGpu = async (script, wasm) => {
  const gpu = await import(script);
  await gpu.default({ module_or_path: wasm });
  return gpu.open();
};

// Computations on the server: a stream of events, of which the newest request is the only one that counts.

// A random number that only this tab knows keeps its uploads and its computations apart from those of others.
const TAB = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
// A computation younger than this many milliseconds is waited for, so that curves follow while a slider moves.
const PATIENCE = 400;

export class Runner {
  #handlers;
  #current = null;
  #next = null;

  // handlers: {event(event, request), end(request)}
  constructor(handlers) { this.#handlers = handlers; }

  // request: {view, settings, since}
  start(request) {
    if (this.#current === null) { this.#run(request); return; }
    this.#next = request;
    if (performance.now() - this.#current.begun > PATIENCE) { this.#current.abort.abort(); return; }
    const running = this.#current;
    setTimeout(() => { if (this.#current === running && this.#next) running.abort.abort(); }, PATIENCE);
  }

  stop() {
    this.#next = null;
    this.#current?.abort.abort();
  }

  async #run(request) {
    const job = { begun: performance.now(), abort: new AbortController() };
    this.#current = job;
    try {
      await this.#follow(request, job.abort.signal);
    } catch (error) {
      if (error.name !== "AbortError") {
        this.#handlers.event({ event: "failed", sentence: "The server does not answer: is `holdfast lab` still running?" }, request);
      } else if (this.#next === null) {
        this.#handlers.event({ event: "stopped" }, request);
      }
    }
    this.#current = null;
    const next = this.#next;
    this.#next = null;
    if (next) this.#run(next); else this.#handlers.end(request);
  }

  async #follow(request, signal) {
    const response = await fetch(`/api/views/${request.view}`, {
      method: "POST", signal, headers: { "content-type": "application/json", "x-tab": TAB }, body: JSON.stringify(request.settings),
    });
    if (!response.ok) {
      this.#handlers.event({ event: "failed", sentence: await refusal(response) }, request);
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const lines = text.split("\n");
      text = lines.pop();
      for (const line of lines) if (line) this.#handlers.event(JSON.parse(line), request);
    }
  }
}

export async function refusal(response) {
  try { return (await response.json()).error; } catch { return `The server answered with an error (${response.status})`; }
}

// Sends a file for this tab; returns the number under which the server has it.
export async function upload(file) {
  const headers = { "content-type": "application/octet-stream", "x-tab": TAB, "x-file-name": encodeURIComponent(file.name) };
  const response = await fetch("/api/uploads", { method: "POST", headers, body: file });
  if (!response.ok) throw new Error(await refusal(response));
  return (await response.json()).upload;
}

// The upload goes with the page: the server need not wait until it has been idle for long.
export function leave() {
  fetch("/api/uploads", { method: "DELETE", headers: { "x-tab": TAB }, keepalive: true }).catch(() => {});
}

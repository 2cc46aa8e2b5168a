// Browsers start no workers in pages that are opened from disk. There, a hidden frame runs the search's script instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) =>
        setTimeout(() => this.onmessage?.(new MessageEvent("message", { data: structuredClone(data) })));
      this.loaded = new Promise((resolve) => {
        const script = this.scope.document.createElement("script");
        script.onload = resolve;
        script.src = url;
        this.scope.document.documentElement.append(script);
      });
    }

    async postMessage(data) {
      await this.loaded;
      this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data: structuredClone(data) }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

/* In the documentation the playground lives in a frame: this gives it the state of the page's address
 * and the page's palette, and takes its height and its state from it. */
(function () {
  "use strict";

  const frame = document.getElementById("playground-frame");
  const isState = (hash) => hash.startsWith("#x=");
  const scheme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");
  const send = (message) => frame.contentWindow.postMessage({ playground: message }, "*");

  function greet() {
    send({ page: location.href, scheme: scheme(), hash: isState(location.hash) ? location.hash : "" });
  }

  function take({ ready, height, hash }) {
    if (ready) greet();
    if (height) frame.style.height = `${height}px`;
    if (hash && hash !== location.hash) history.replaceState(history.state, "", hash);
  }

  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data && data.playground) take(data.playground);
  });
  addEventListener("hashchange", () => isState(location.hash) && send({ hash: location.hash }));
  new MutationObserver(() => send({ scheme: scheme() })).observe(document.body, {
    attributeFilter: ["data-md-color-scheme"],
  });
  greet(); // it may have been ready before us
})();

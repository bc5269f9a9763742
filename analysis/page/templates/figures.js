// Figures enlarge: a click, Enter or Space on one shows it at full size, above the page. Escape, the
// button or another click closes it. What keeps the keyboard inside, and then brings it back to the
// figure, is the browser's own dialog.
(() => {
  "use strict";

  const dialog = document.getElementById("enlarged");
  const room = document.getElementById("enlarged-room");

  for (const button of document.querySelectorAll("button.enlarge")) {
    button.addEventListener("click", () => {
      const picture = button.querySelector("img").cloneNode();
      document.getElementById("enlarged-title").textContent =
        button.closest("figure").querySelector("strong").textContent;
      room.replaceChildren(picture);
      dialog.showModal();
      room.focus(); // arrow keys scroll
    });
  }
  dialog.addEventListener("click", () => dialog.close());
  // The event comes after the fact: by then the next figure may be open.
  dialog.addEventListener("close", () => dialog.open || room.replaceChildren());
})();

// Spikes: draws those of any presentation, a tick for each. Nothing here talks to anything outside
// the page; colours and sizes are the style sheet's.
(() => {
  "use strict";

  const source = document.getElementById("spikes-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const last = data.moments.length - 1;
  const element = (id) => document.getElementById(`spikes-${id}`);
  const view = { moment: last };

  const count = (number, noun) => `${number} ${noun} spike${number === 1 ? "" : "s"}`;

  function show(moment) {
    view.moment = Math.min(Math.max(moment, 0), last);
    const t = data.moments[view.moment], counts = [];
    for (const group of data.groups) {
      const steps = group.step[view.moment], rows = group.row[view.moment];
      const picture = element(group.name);
      // The first row is at the bottom; a spike belongs to the middle of its step. Among very many
      // rows a tick is higher than its own, to be seen.
      const tall = Math.max(.8, group.rows / 100);
      picture.querySelector("path").setAttribute("d",
        steps.map((step, i) => `M${step - .5} ${group.rows - rows[i] - (1 + tall) / 2}v${tall}`).join(""));
      const firing = new Set(rows).size, said = count(steps.length, group.name);
      picture.setAttribute("aria-label", `${said} from ${firing} of ${group.rows} cells`);
      counts.push(said);
    }
    element("moment").value = view.moment;
    element("moment").setAttribute("aria-valuetext", `presentation ${t}`);
    element("moment-value").textContent = `${t} of ${data.lastPresentation}`;
    element("status").textContent =
      `Presentation ${t}: ${data.texts[view.moment]}. ${counts.reverse().join(", ")}.`;
  }

  element("moment").addEventListener("input", (event) => show(Number(event.target.value)));
  element("previous").addEventListener("click", () => show(view.moment - 1));
  element("next").addEventListener("click", () => show(view.moment + 1));

  window.spikes = { moments: data.moments, show, view }; // for the console
  show(last);
})();

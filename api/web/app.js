"use strict";

const byId = (id) => document.getElementById(id);
const pageSize = 25;
const refreshEvery = 3000;
const tones = {
  indexed: "good", unchanged: "good", resolved: "good",
  accepted: "busy", chunked: "busy", embedded: "busy", replaying: "busy",
  retrying: "warn", scheduled: "warn", dead: "bad", waiting: "bad",
};

// el makes an element; text from the API only ever becomes text.
function el(name, options = {}, ...children) {
  const e = document.createElement(name);
  const { text, ...rest } = options;
  if (text !== undefined) e.textContent = text;
  Object.assign(e, rest);
  e.append(...children);
  return e;
}

class Refusal extends Error {
  constructor(problem) {
    super([problem.title, problem.field, problem.detail].filter(Boolean).join(": "));
    this.problem = problem;
  }
}

// call asks the API and gives the decoded answer; a problem is thrown as a Refusal.
async function call(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = "Bearer " + token;
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  let problem = { title: "HTTP " + answer.status, status: answer.status };
  try { problem = await answer.json(); } catch { /* not a problem of the API */ }
  if (answer.status === 401) askToken();
  throw new Refusal(problem);
}

const json = async (path, options) => (await call(path, options)).json();

function notice(text) {
  byId("notice").textContent = text ?? "";
  byId("notice").hidden = !text;
}

// Who closes the dialog without a token is not asked again, but for the button.
let tokenDeclined = false;

function askToken() {
  byId("token-button").hidden = false;
  if (!tokenDeclined && !byId("token-dialog").open) byId("token-dialog").showModal();
}

function pill(word) {
  return el("span", { className: "pill " + (tones[word] ?? ""), text: word });
}

const steps = [[60, "second"], [60, "minute"], [24, "hour"], [365, "day"]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

function ago(at) {
  let n = (Date.parse(at) - Date.now()) / 1000;
  for (const [size, unit] of steps) {
    if (Math.abs(n) < size) return relative.format(Math.round(n), unit);
    n /= size;
  }
  return new Date(at).toLocaleDateString();
}

function time(at) {
  return el("td", { className: "time", text: ago(at), title: new Date(at).toLocaleString() });
}

function replace(list, nodes) {
  list.replaceChildren(...nodes);
}

// ---- counts and readiness

async function showReady() {
  const ready = byId("ready");
  try {
    await json("/readyz");
    ready.className = "pill good";
    ready.textContent = "ready";
    ready.title = "";
  } catch (error) {
    const reasons = error.problem?.reasons ?? [];
    ready.className = "pill bad";
    ready.textContent = error.problem ? "not ready: " + reasons.map((r) => r.reason.replaceAll("_", " ")).join(", ") : "no answer";
    ready.title = reasons.map((r) => r.message).join("\n");
  }
}

const working = ["accepted", "chunked", "embedded", "retrying"];

async function showStats() {
  const stats = await json("/v1/stats");
  const count = (statuses) => statuses.reduce((n, s) => n + (stats.documents[s] ?? 0), 0);
  const tiles = [
    ["in work", count(working), "busy"],
    ["indexed", count(["indexed", "unchanged"]), "good"],
    ["dead", count(["dead"]), "bad"],
    ["deleted", count(["deleted"]), ""],
    ["chunks stored", stats.store.chunks, ""],
    ["dead letters", stats.dead_letters.waiting ?? 0, "bad"],
    ["retries", stats.dead_letters.scheduled ?? 0, "warn"],
    ["lag", Object.values(stats.lag).reduce((a, b) => a + b, 0), "busy"],
  ];
  replace(byId("tiles"), tiles.map(([label, n, tone]) => {
    const tile = byId("tile").content.firstElementChild.cloneNode(true);
    tile.classList.toggle(tone || "none", n > 0);
    tile.querySelector(".count").textContent = n.toLocaleString("en");
    tile.querySelector(".label").textContent = label;
    return tile;
  }));
}

// ---- lists

// A list shows its first page and refreshes it; "More" adds pages, and stops the refreshing until the filter changes.
class List {
  constructor({ path, field, body, empty, more, filter, parameter, row }) {
    Object.assign(this, { path, field, parameter, row });
    this.body = byId(body);
    this.empty = byId(empty);
    this.more = byId(more);
    this.filter = byId(filter);
    this.paged = false;
    this.more.addEventListener("click", () => attempt(() => this.next()));
    this.filter.addEventListener("change", () => attempt(() => this.first()));
  }

  async page(cursor) {
    const query = new URLSearchParams({ limit: pageSize });
    if (this.filter.value) query.set(this.parameter, this.filter.value);
    if (cursor) query.set("cursor", cursor);
    const page = await json(this.path + "?" + query);
    this.cursor = page.next_cursor;
    this.more.hidden = !this.cursor;
    return page[this.field];
  }

  async first() {
    const entries = await this.page();
    this.paged = false;
    this.empty.hidden = entries.length > 0;
    replace(this.body, entries.map(this.row));
    return entries;
  }

  async next() {
    this.paged = true;
    this.body.append(...(await this.page(this.cursor)).map(this.row));
  }

  async refresh() {
    if (!this.paged) await this.first();
  }
}

const documents = new List({
  path: "/v1/documents", field: "documents", body: "documents", empty: "no-documents", more: "more-documents",
  filter: "status", parameter: "status",
  row: (d) => el("tr", {},
    el("td", {},
      el("button", { className: "id", text: d.document_id, onclick: () => attempt(() => showDetail(d)) }),
      ...(d.error ? [el("span", { className: "sub", text: d.error.reason + ": " + d.error.message })] : []),
      ...(d.warnings ?? []).map((w) => el("span", { className: "sub", text: w }))),
    el("td", {}, pill(d.status)),
    el("td", { className: "number", text: d.chunks ? d.chunks.toLocaleString("en") : "–" }),
    time(d.updated_at)),
});

const letterPath = (l) => "/v1/dead-letters/" + encodeURIComponent(l.id);

const letters = new List({
  path: "/v1/dead-letters", field: "dead_letters", body: "letters", empty: "no-letters", more: "more-letters",
  filter: "state", parameter: "state",
  row: (l) => {
    const waiting = l.state === "waiting";
    const replay = el("button", { className: "small", text: "Replay", hidden: !waiting || Boolean(l.lost) });
    const discard = el("button", { className: "small quiet", text: "Discard", hidden: !waiting });
    const decide = (options, path) => attempt(async () => {
      replay.disabled = discard.disabled = true;
      try {
        await call(path, options);
      } finally {
        await refresh();
      }
    });
    replay.addEventListener("click", () => decide({ method: "POST" }, letterPath(l) + "/replay"));
    discard.addEventListener("click", () => decide({ method: "DELETE" }, letterPath(l)));
    const bytes = el("button", { className: "small quiet", text: "Bytes", title: "Save the original bytes", hidden: Boolean(l.lost) });
    bytes.addEventListener("click", () => attempt(() => savePayload(l)));
    return el("tr", {},
      el("td", {},
        el("button", { className: "id", text: l.document_id, onclick: () => attempt(() => showDetail(l)) }),
        el("span", { className: "sub", text: l.id })),
      el("td", {}, el("strong", { text: l.reason }), el("span", { className: "sub", text: `${l.stage}: ${l.error}` })),
      el("td", {}, pill(l.state)),
      el("td", { className: "number", text: l.attempts }),
      time(l.last_failed_at),
      el("td", { className: "actions" }, replay, discard, bytes));
  },
});

async function savePayload(l) {
  const blob = await (await call(letterPath(l) + "/payload")).blob();
  const link = el("a", { href: URL.createObjectURL(blob), download: l.document_id.split("/").pop() || "payload" });
  link.click();
  URL.revokeObjectURL(link.href);
}

byId("replay-all").addEventListener("click", () => attempt(async () => {
  if (!confirm("Replay every waiting dead letter?")) return;
  await call("/v1/dead-letters/replay", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ all: true }),
  });
  await refresh();
}));

// ---- one submission

function facts(pairs) {
  replace(byId("detail-facts"), pairs.flatMap(([name, value]) => [
    el("dt", { text: name }), el("dd", {}, value instanceof Node ? value : String(value)),
  ]));
}

function showFailure(failure) {
  byId("detail-error").hidden = !failure;
  byId("detail-error").textContent = failure ? `${failure.stage}: ${failure.reason}: ${failure.message}` : "";
}

async function showDetail(d) {
  byId("detail-title").textContent = d.document_id;
  facts([["Message", d.message_id]]);
  showFailure(null);
  replace(byId("timeline"), []);
  byId("timeline-title").hidden = true;
  byId("detail").showModal();
  const query = new URLSearchParams({ document_id: d.document_id });
  let m;
  try {
    m = await json("/v1/messages/" + encodeURIComponent(d.message_id) + "?" + query);
  } catch (error) {
    if (error.problem?.status !== 404) throw error;
    facts([["Message", d.message_id], ["Timeline", "not kept any more"]]);
    return;
  }
  facts([
    ["Status", pill(m.status)], ["Message", m.message_id], ["Version", m.version], ["Chunks", m.chunks || "–"], ["Attempts", m.attempts],
    ...(d.served ? [["Served", `version ${d.served.version}, ${d.served.chunks} chunks`]] : []),
  ]);
  showFailure(m.error);
  byId("timeline-title").hidden = m.events.length === 0;
  replace(byId("timeline"), m.events.map((e) => el("li", {}, pill(e.outcome),
    el("span", { text: e.stage + (e.attempt > 1 ? ", attempt " + e.attempt : "") + (e.generation ? ", replay " + e.generation : "") }),
    el("span", { className: "soft", text: new Date(e.at).toLocaleString() }))));
}

byId("detail-close").addEventListener("click", () => byId("detail").close());

// ---- search

// marked is the text with the words of the query marked.
function marked(text, query) {
  const words = query.split(/[^\p{L}\p{N}]+/u).filter((w) => w.length > 2);
  if (words.length === 0) return [text];
  const parts = text.split(new RegExp("(" + words.join("|") + ")", "giu"));
  return parts.map((part, i) => (i % 2 ? el("mark", { text: part }) : part));
}

async function search() {
  const q = byId("q").value.trim();
  if (!q) return;
  history.replaceState(null, "", "?" + new URLSearchParams({ q, mode: byId("mode").value }));
  const { hits } = await json("/v1/search?" + new URLSearchParams({ q, k: 10, mode: byId("mode").value }));
  byId("results").hidden = false;
  byId("result-note").textContent = hits.length === 0 ? "nothing found" : hits.length + (hits.length === 1 ? " hit" : " hits");
  replace(byId("hits"), hits.map((h) => el("li", {},
    el("div", { className: "hit-head" },
      el("strong", { text: h.title || h.document_id }),
      el("span", { className: "sub", text: [h.title && h.document_id, h.heading, h.page && "page " + h.page].filter(Boolean).join(" · ") }),
      el("span", { className: "soft", text: h.score.toFixed(3) })),
    el("p", { className: "hit-text" }, ...marked(h.text, q)))));
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(search);
});
byId("clear").addEventListener("click", () => {
  byId("results").hidden = true;
  byId("q").value = "";
  history.replaceState(null, "", "/");
});

// ---- token and refreshing

byId("token-button").addEventListener("click", () => byId("token-dialog").showModal());
byId("token-dialog").addEventListener("close", () => {
  tokenDeclined = byId("token-dialog").returnValue !== "save";
  if (tokenDeclined) return;
  sessionStorage.setItem("token", byId("token").value.trim());
  byId("token").value = "";
  attempt(refresh);
});

async function attempt(action) {
  try {
    await action();
    notice();
  } catch (error) {
    notice(error instanceof Refusal ? error.message : "No answer: " + error.message);
  }
}

async function refresh() {
  await showReady();
  await showStats();
  await documents.refresh();
  await letters.refresh();
  byId("replay-all").hidden = letters.body.children.length === 0 || byId("state").value !== "waiting";
}

async function loop() {
  if (!document.hidden && !byId("token-dialog").open) await attempt(refresh);
  setTimeout(loop, refreshEvery);
}

document.querySelector("#no-documents code").textContent = `curl -T report.pdf ${location.origin}/v1/documents/`;

const asked = new URLSearchParams(location.search);
if (asked.has("q")) {
  byId("q").value = asked.get("q");
  if (asked.has("mode")) byId("mode").value = asked.get("mode");
  attempt(search);
}
loop();

// The chat page: submit a question, follow the stream, show text as it comes. Text from the service is only ever set as
// text, never as HTML; pictures are made here, and only for addresses of this service's own screens.
"use strict";

const $ = (id) => document.getElementById(id);
const PICTURE = /!?\[([^\]\n]*)\]\((?:\.\.\/)*(screens\/[A-Za-z0-9._-]+\.png)\)/g;
const STATUS = { missing_id: "no such passage", not_in_context: "not among the passages", not_in_force: "not in force",
  not_allowed: "not for this reader" };
const AGAIN_AFTER = [100, 300, 1000]; // ms; an answer pauses only 0.8 s for a reader who is away
let leaving = null;

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Text with the links to screenshots shown as pictures. A link that is still arriving stays text until it is whole.
function fill(element, text) {
  const nodes = [];
  let last = 0;
  for (const found of text.matchAll(PICTURE)) {
    nodes.push(document.createTextNode(text.slice(last, found.index)));
    const picture = make("img");
    picture.alt = found[1] || "Screenshot";
    picture.src = found[2];
    nodes.push(picture);
    last = found.index + found[0].length;
  }
  nodes.push(document.createTextNode(text.slice(last)));
  // Pictures already shown stay as they are, so that a growing answer does not load them again.
  const shown = [...element.querySelectorAll("img")];
  nodes.forEach((node, place) => {
    if (node.tagName === "IMG") {
      const same = shown.find((old) => old.getAttribute("src") === node.getAttribute("src"));
      if (same) { nodes[place] = same; shown.splice(shown.indexOf(same), 1); }
    }
  });
  element.replaceChildren(...nodes);
}

// Server-sent events from a byte stream: whole characters only, events split at blank lines.
async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder("utf-8");
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const event = { name: "message", data: "", id: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        const colon = line.indexOf(": ");
        const [field, content] = [line.slice(0, colon), line.slice(colon + 2)];
        if (field === "event") event.name = content;
        if (field === "id") event.id = content;
        if (field === "data") event.data += content;
      }
      if (event.data) yield { ...event, data: JSON.parse(event.data) };
    }
    if (done) return;
  }
}

class Refusal extends Error {}

async function refuse(response) {
  let text = `The service answered ${response.status}; ask again.`;
  try { text = (await response.json()).error || text; } catch { /* no JSON: the status says enough */ }
  throw new Refusal(text);
}

function showPassages(turn, found) {
  turn.about.textContent = `${found.intent} question: ${found.reason}. As of ${found.as_of}, audience ${found.audience}.`;
  turn.passages = new Map();
  if (found.passages.length) turn.sources.append(make("h3", "", "Passages the answer is drawn from"));
  for (const passage of found.passages) {
    const box = make("details", "passage");
    const until = passage.effective_to ? `to ${passage.effective_to}` : "no end date";
    const place = passage.section ? `${passage.title}: ${passage.section}` : passage.title;
    box.append(make("summary", "", `${place} [${passage.id}]`));
    box.append(make("p", "about", `${passage.document}, ${passage.type}, in force from ${passage.effective_from}, ${until}`));
    const text = make("div", "text");
    fill(text, passage.text);
    box.append(text);
    turn.sources.append(box);
    turn.passages.set(passage.id, box);
  }
}

function citation(turn, check) {
  const button = make("button", "citation", check.id);
  button.type = "button";
  if (check.status !== "ok") {
    button.classList.add("bad");
    button.textContent += ` ✗ ${STATUS[check.status] || check.status}`;
  }
  const box = turn.passages.get(check.id);
  if (!box) { button.disabled = true; return button; }
  button.addEventListener("click", () => {
    turn.sources.querySelectorAll(".shown").forEach((other) => other.classList.remove("shown"));
    box.open = true;
    box.classList.add("shown");
    box.querySelector("summary").focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
    box.querySelector("summary").scrollIntoView({ block: "nearest" }); // of a passage that does not fit, its head
  });
  return button;
}

function showAnswer(turn, asked) {
  fill(turn.answer, asked.answer);
  if (asked.claims.length) turn.box.insertBefore(make("h3", "", "Each statement and its source"), turn.claims);
  asked.claims.forEach((claim, place) => {
    const item = make("li", "", claim.text);
    for (const check of asked.checks.filter((one) => one.claim === place)) item.append(citation(turn, check));
    turn.claims.append(item);
  });
  if (asked.answerable && !asked.grounded) {
    turn.box.insertBefore(make("p", "bad-note", "Not every statement of this answer has a source that holds."), turn.claims);
  }
  const how = make("details", "passage");
  how.append(make("summary", "", "How this was answered"));
  const cost = `${asked.model}, ${asked.tokens_in} tokens in, ${asked.tokens_out} out, ${asked.seconds} s`;
  for (const line of [cost, `Searched: ${asked.searched.join(" / ")}`, ...asked.notes]) how.append(make("p", "about", line));
  turn.sources.append(how);
}

function newTurn(question) {
  const turn = { box: make("article", "turn"), about: make("p", "about"), answer: make("div", "answer"),
    claims: make("ol", "claims"), sources: make("div", "sources"), text: "", passages: new Map(), last: "" };
  turn.box.append(make("h2", "asked", question), turn.about, turn.answer, turn.claims, turn.sources);
  $("turns").append(turn.box);
  turn.box.scrollIntoView({ block: "start" });
  return turn;
}

// One answer from submitting to its last event. A connection that breaks is taken up again where it broke off.
async function ask(question, asOf, token, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const body = JSON.stringify(asOf ? { question, as_of: asOf } : { question });
  const accepted = await fetch("conversations", { method: "POST", body, signal,
    headers: { "Content-Type": "application/json", ...headers } });
  if (!accepted.ok) await refuse(accepted);
  const id = (await accepted.json()).conversation_id;
  const turn = newTurn(question);
  try {
    await followed(turn, id, headers, signal);
  } catch (error) {
    cutShort(turn, error);
    throw error;
  }
}

// What is missing is said in the turn itself: the status line soon speaks of the next question.
function cutShort(turn, error) {
  const why = error.name === "AbortError" ? "Stopped before the end." : `Not finished: ${told(error)}`;
  turn.box.insertBefore(make("p", "bad-note", why), turn.claims);
}

function told(error) {
  return error instanceof Refusal ? error.message : "The service cannot be reached; ask again in a moment.";
}

async function followed(turn, id, headers, signal) {
  for (let tries = 0; ; tries += 1) {
    try {
      const again = turn.last ? { "Last-Event-ID": turn.last } : {};
      const response = await fetch(`conversations/${encodeURIComponent(id)}/stream`, { headers: { ...headers, ...again }, signal });
      if (!response.ok) await refuse(response);
      for await (const event of events(response)) {
        turn.last = event.id;
        if (event.name === "passages") { showPassages(turn, event.data); $("status").textContent = "Writing …"; }
        if (event.name === "token") { turn.text += event.data.text; fill(turn.answer, turn.text); }
        if (event.name === "answer") showAnswer(turn, event.data);
        if (event.name === "error") throw new Refusal(event.data.error);
        if (event.name === "done") return;
      }
      throw new Error("the stream ended early");
    } catch (error) {
      if (error instanceof Refusal || error.name === "AbortError" || tries === AGAIN_AFTER.length) throw error;
      $("status").textContent = "The connection broke; trying again …";
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER[tries]));
    }
  }
}

$("ask").addEventListener("submit", async (submitted) => {
  submitted.preventDefault();
  const question = $("question").value.trim();
  if (!question || leaving) return;
  leaving = new AbortController();
  $("send").disabled = true;
  $("stop").hidden = false;
  $("status").textContent = "Searching …";
  try {
    $("question").value = "";
    await ask(question, $("as-of").value, $("token").value.trim(), leaving.signal);
    $("status").textContent = "Answered.";
  } catch (error) {
    if (error.name === "AbortError") $("status").textContent = "Stopped.";
    else {
      $("status").textContent = told(error);
      $("question").value = $("question").value || question;
    }
  }
  leaving = null;
  $("send").disabled = false;
  $("stop").hidden = true;
  $("question").focus();
});
// What is scrolled to must not end up behind the form, which stays at the bottom and grows with what is in it.
new ResizeObserver(() => {
  document.documentElement.style.scrollPaddingBottom = `${$("ask").offsetHeight + 8}px`;
}).observe($("ask"));
$("stop").addEventListener("click", () => leaving && leaving.abort());
$("question").addEventListener("keydown", (key) => {
  if (key.key === "Enter" && !key.shiftKey && !key.isComposing) { key.preventDefault(); $("ask").requestSubmit(); }
});

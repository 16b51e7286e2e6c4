"""What kind of answer a question asks for: an explanation (concept), a place on a screen (screen), or both (ambiguous).

The rules look at how a question is put, never at one word alone: "Screen time rules for children" is about rules,
"Which button starts the mower?" is about a machine. A wrong label costs little, for the other kind of passage is moved
down and never left out; what no rule recognises is ambiguous, which explains and adds screens that match strongly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from labsupport.pipeline import LabError

POSTURES = {"concept": "explaining", "ambiguous": "explaining", "screen": "pointing"}
EXTRA_SCREENS = 2  # how many strongly matching screen passages a screen or ambiguous question may bring along

# Parts of a screen. "box" alone is left out: goods come in boxes too.
_PART = (
    r"(?:button|field|(?:check|tick|text) ?box|tab|menu|list|drop-?down|icon|link|page|screen|form|toggle"
    r"|bouton|champ|case|onglet|liste|ic[oô]ne|lien|[ée]cran|formulaire|rubrique)(?:e?s)?\b"
)
_WORDS = r"(?:[^\s?.!]+\s+)"
# "which page shows" asks for a page, "what screen time" and "which form of payment" do not: what follows decides.
_END = (
    r"(?=\s*[?.!,:;)\"'”’»]|\s*$|\s+(?:do|does|did|is|are|was|can|could|should|must|will|to|on|for|in|at|where|that|and|or"
    r"|shows?|lists?|lets?|holds?|tells?|asks?|takes?|opens?|contains?|means?|needs?|has|have|i|we|you|they"
    r"|of (?:the|my) (?:\S+ )?(?:page|screen|form)"
    r"|doit|dois|faut|puis|est|sont|de|du|des|pour|sur|où|ou|et|montre|affiche|permet|contient)\b)"
)
_THE = r"\b(?:the|this|that|my|le|la|ce|cette|l['’])\s*"
_ASK = r"\b(?:where|which|what|how|o[uù]|quels?|quelles?|comment|que|qu['’]est-ce)\b"
_ACT = r"\b(?:click|tap|tick|type|select|upload|scroll|press|cliquer|cliquez|cocher|saisir|appuyer)\b"
_STATE = (
    r"(?:is|are|stays?|remains?|does(?:n['’]t| not)|wo(?:n['’]t)|will not|ca(?:n['’]t)|cannot|has (?:gone|disappeared)"
    r"|est|sont|reste|ne)\b"
)
_SCREEN = [
    (rf"{_ASK}[^?.]*{_ACT}", "asks where to click or type"),
    (rf"\b(?:which|what|quels?|quelles?)\s+{_WORDS}{{0,2}}?{_PART}{_END}", "asks which field, button or page"),
    (rf"{_THE}{_WORDS}{{0,3}}?{_PART}\s+{_STATE}", "says how a part of the screen behaves"),
    (rf"\b(?:find|see|trouver?|voir|vois)\s+{_THE}{_WORDS}{{0,3}}?{_PART}", "looks for a part of the screen"),
    (rf"{_ASK}.*{_THE}{_WORDS}{{0,4}}?{_PART}{_END}", "asks about a part of a screen"),
    (
        r"\b(?:where|o[uù])\b.*\b(?:enter|fill in|change|indiquer|remplir|modifier)\b"
        r"|\b(?:where|o[uù])\b.*\b(?:see|find|check|view|voir|trouver|suivre)\b"
        r".*\b(?:orders?|status|invoices?|refunds?|requests?|points|tracking|commandes?|suivi|factures?|demandes?)\b",
        "asks where to see or enter something",
    ),
]
# "In the return form, what …": the place alone is no question, it says where what is asked stands.
_PLACE = [(rf"^(?:in|on|under|dans|sur)\s+{_THE}{_WORDS}{{0,3}}?{_PART}\s*$", "asks about a part of a screen")]
_EXPLAIN = [
    (r"^(?:please )?(?:explain|describe|tell me about|compare|expliquez|d[ée]crivez)\b", "asks to explain"),
    (r"\b(?:how|comment)\b.*\b(?:works?|compares?|differs?|fonctionnent|fonctionne)\b", "asks how something works"),
    (
        r"\b(?:how (?:long|much|many|often|soon|far|old)|(?:until|by) when|combien|(?:jusqu['’][àa] )?quand)\b|^when\b",
        "asks for a figure or a date",
    ),
]
_STEPS = [
    (
        r"^(?:how (?:do|can|should|would|to)|comment)\b|\bhow (?:do|can) (?:i|we|you|they|a customer)\b",
        "asks for steps, which stand in explanations and on screens",
    )
]
_LEAD = r"(?:so|but|and|then|et|mais|alors)"
_PUT = (  # the order of words in a question, whatever it asks
    r"(?:\best-ce que\b|\b(?:can|may|must|should|do|does|is|will) (?:i|we|you|they|he|she|it|there|a|an|the|my|our)\b"
    r"|\b(?:puis|peut|faut|dois|doit|a-t)-(?:je|on|il)\b)"
)
_FACTS = [
    (
        r"^(?:(?:from|to|at|in|by|after|for|on|with|above|under) )?(?:what|whom?|which|qui|quels?|quelles?|que)\b"
        r"|^qu['’]est-ce\b|\bwhat(?:['’]s| is| are| happens)\b",
        "asks what something is",
    ),
    (r"^(?:why|pourquoi)\b", "asks for a reason"),
    (rf"^(?:{_LEAD} )?(?:where|o[uù])\b.*{_PUT}", "asks where something is or goes"),
    (rf"^(?:{_LEAD} )?how\b.*{_PUT}", "asks how something is or is done"),
    (
        r"^(?:is|are|was|do|does|did|can|may|could|must|should|will|would|has|have)\b"
        rf"|{_PUT}|^\w+-(?:vous|nous|on|ils?|elles?)\b",
        "asks whether something holds",
    ),
    (
        r"\b(?:rules?|policy|policies|terms|conditions|deadline|period|limits?|price|fees?|warranty|guarantee|difference"
        r"|r[èe]gles?|d[ée]lai|garanties?|prix|frais)\b",
        "names a rule, a period or a price",
    ),
]
_MACHINE = (
    r"\b(?:mower|washer|trimmer|battery|engine|machine|pump|motor|trigger|hose|blade|charger|tondeuse|batterie"
    r"|[a-z]{2}-?\d{2,4})\b"
)
_ON_SCREEN = (
    r"\b(?:page|screen|form|website|site|account|online|app|tick|click|[ée]cran|formulaire|compte|en ligne|cocher)\b"
)
# A new clause starts at a sentence end, or where "and" leads into a question of its own.
_CLAUSES = re.compile(
    r"[?!;]\s*|\.\s+|,\s*"
    r"|\s+(?:and|or|et|ou)\s+(?=(?:which|where|what|how|why|when|who|can|do|does|is|o[uù]|quel|quelle|comment)\b)"
)
# "Where is it?" says nothing of its own.
_POINTS_BACK = re.compile(r"^(?:where|what|how|why|is|can|o[uù])\b.{0,8}\b(?:it|that|them|this|now)$")
_READ = 2_000  # characters of a question that the rules look at: the patterns take quadratic time


@dataclass(frozen=True)
class Intent:
    """`label` is concept, screen or ambiguous; `reason` is one phrase for the reader."""

    label: str
    reason: str

    @property
    def posture(self) -> str:
        """What the prompt asks for: explaining or pointing."""
        return POSTURES[self.label]

    def __str__(self) -> str:
        return f"{self.label} ({self.reason}; {self.posture})"


def route(question: str) -> Intent:
    """The intent of `question`, by rules alone: the same question always gets the same label. Empty: LabError."""
    text = " ".join(question.strip()[:_READ].casefold().split())
    if not text:
        raise LabError("The question is empty; type a question, such as: How long can I return an unused item?")
    clauses = [clause for clause in _CLAUSES.split(text) if len(clause.split()) > 1 and not _POINTS_BACK.search(clause)]
    found = dict(reversed([sign for clause in clauses if (sign := _clause(clause))]))
    explain, fact, screen = found.get("explain"), found.get("fact"), found.get("screen")
    if screen and (explain or fact):
        return Intent("ambiguous", f"one part {explain or fact}, another {screen}")
    if (screen or "place" in found) and not explain:
        return Intent("screen", screen or found["place"])
    if explain or fact:
        return Intent("concept", explain or fact)
    if "steps" in found:
        return Intent("ambiguous", found["steps"])
    return Intent("ambiguous", "unclear: falls back to explaining, screens that match strongly added")


def _clause(clause: str) -> tuple[str, str] | None:
    about_machine = re.search(_MACHINE, clause) and not re.search(_ON_SCREEN, clause)
    rules = [("explain", _EXPLAIN), ("steps", _STEPS), ("fact", _FACTS)]
    for label, patterns in rules if about_machine else [("place", _PLACE), ("screen", _SCREEN), *rules]:
        for pattern, reason in patterns:
            if re.search(pattern, clause):
                return label, reason
    return None


def favour(intent: Intent, chunks: Sequence, more: Sequence = ()) -> list:
    """Reorder `chunks` (best first): the favoured kind first, the other kind after it, nothing left out.

    `more` are screen chunks from further down that match strongly; up to EXTRA_SCREENS of them are added to a screen
    or an ambiguous question, which keeps the search order otherwise.
    """
    kept = {chunk.chunk_id for chunk in chunks}
    extra = [] if intent.label == "concept" else [
        chunk for chunk in more if chunk.content_kind == "screen" and chunk.chunk_id not in kept
    ][:EXTRA_SCREENS]
    if intent.label == "ambiguous":
        return [*chunks, *extra]
    first = "screen" if intent.label == "screen" else "prose"
    return sorted([*chunks, *extra], key=lambda chunk: chunk.content_kind != first)

"""Draw the small screenshots that the screen guides link to: one HTML mock-up each, photographed by headless Chromium.

Run `python docs/draw_screens.py` after changing a screen; the pictures in corpus/screens/ are committed.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCREENS = Path(__file__).parents[1] / "corpus" / "screens"
WIDTH = 540
STYLE = """
* { box-sizing: border-box } body { margin: 0; font: 14px "DejaVu Sans", sans-serif; color: #1d2b22; background: #fff }
header { background: #1f5c3a; color: #fff; padding: 9px 18px; display: flex; justify-content: space-between }
main { padding: 12px 18px } h1 { font-size: 18px; margin: 0 0 10px }
label { display: block; margin: 9px 0 3px; font-weight: 600 }
.field { border: 1px solid #6c7a71; border-radius: 4px; padding: 6px 9px; background: #fff; min-height: 33px }
.row { display: flex; gap: 14px; align-items: flex-end } .row > div { flex: 1 }
.line { border: 1px solid #c6cfc9; border-radius: 4px; padding: 8px 10px; margin-bottom: 7px; display: flex; gap: 12px;
  align-items: center; justify-content: space-between }
.grey { color: #77817b; background: #f0f2f1 } .red { border: 2px solid #b3261e; color: #b3261e }
.button { display: inline-block; border: 1px solid #1d4f91; background: #1d4f91; color: #fff; border-radius: 4px;
  padding: 6px 12px; white-space: nowrap }
.plain { background: #fff; color: #1d4f91 } .tick::before { content: "\\2611\\00a0" }
.box::before { content: "\\2610\\00a0" }
.list::after { content: "\\25be"; float: right }
.step { color: #fff; background: #1f5c3a; border-radius: 12px; padding: 3px 11px }
.todo { color: #1d2b22; background: #dfe6e2 } p { margin: 9px 0 0 }
"""


def field(label: str, value: str, kind: str = "") -> str:
    return f'<div><label>{label}</label><div class="field {kind}">{value}</div></div>'


def row(*cells: str) -> str:
    return f'<div class="row">{"".join(cells)}</div>'


def line(*cells: str, kind: str = "") -> str:
    return f'<div class="line {kind}">{"".join(f"<span>{cell}</span>" for cell in cells)}</div>'


def button(text: str, kind: str = "") -> str:
    return f'<span class="button {kind}">{text}</span>'


def steps(names: list[str], done: int) -> str:
    spans = [f'<span class="step {"" if i < done else "todo"}">{name}</span>' for i, name in enumerate(names)]
    return f"<p>{' '.join(spans)}</p>"


# name → (page heading, height in pixels, body)
PAGES = {
    "return-form-1-items": (
        "Return items: step 1 of 3",
        244,
        line('<span class="tick">HT-180 hedge trimmer</span>', 'Quantity <span class="field">1</span>')
        + line('<span class="box">Garden gloves, size 9</span>', 'Quantity <span class="field">2</span>')
        + line("Gift card $50", "Cannot be returned (i)", kind="grey")
        + f"<p>{button('Next: reason')}</p>",
    ),
    "return-form-2-reason": (
        "Return items: step 2 of 3",
        292,
        row(field("Reason", "Damaged on arrival", "list"), field("Condition", "Box opened", "list"))
        + field("Details (at least 20 characters)", "Guard cracked on the left side, box dented")
        + f"<p>{button('Add photos', 'plain')} 2 of 6 pictures, JPG or PNG</p>"
        + f"<p>{button('Back', 'plain')} {button('Next: how you send it back')}</p>",
    ),
    "return-form-3-confirmation": (
        "Your return is registered",
        272,
        line("Return number <b>R-4410825</b>", button("Copy", "plain"))
        + line("Send by", "23 October 2026")
        + line("Estimated refund", "$129.00")
        + f"<p>{button('Print a label')} {button('Cancel return', 'plain')}</p>",
    ),
    "my-orders-list": (
        "My orders",
        322,
        field("Search orders", "Order number, product or code")
        + row(field("Status", "Delivered", "list"), field("Period", "Last 90 days", "list"))
        + "<p></p>"
        + line("LF-20418837", "HT-180 hedge trimmer", "Delivered")
        + line("LF-20397712", "BT-18 battery, 2 pieces", "Delivered")
        + button("Add a receipt", "plain"),
    ),
    "my-orders-detail": (
        "Order LF-20418837",
        350,
        line("Ready for pickup", button("Track", "plain"), button("Invoice (PDF)", "plain"))
        + line("LM-400 cordless mower", "1 piece", "&#8942;")
        + f"<p>{button('Change order')} {button('Cancel order')} &nbsp;41:07 left</p>"
        + "<label>Pickup person</label>"
        + row(field("First name", "Jo"), field("Last name", "Arden"), field("Mobile (optional)", "&nbsp;"))
        + f"<p>{button('Save')}</p>",
    ),
    "service-request-1-machine": (
        "New request: the machine",
        316,
        row(field("Product code", "LM-400"), field("Or from your orders", "Choose an order", "list"))
        + field("Serial number", "10 to 14 letters and digits, silver plate")
        + row(field("Proof of purchase", "LF-20418837"), button("Upload a receipt", "plain"))
        + f"<p>{button('Next: the problem')}</p>",
    ),
    "service-request-2-problem": (
        "New request: the problem",
        328,
        '<div class="field red box">Safety problem (smoke, burning smell, electric shock)</div>'
        + field("What happens (up to 1,000 characters)", "Stops after a few minutes, three red blinks")
        + row(field("Since when", "5 October 2026"), '<div><p class="box">Used for work</p></div>')
        + f"<p>{button('Add a video', 'plain')} up to 60 seconds, 100 MB</p>"
        + f"<p>{button('Send request')}</p>",
    ),
    "service-request-3-status": (
        "Request SR-118204",
        244,
        steps(["Received", "Diagnosis", "Quote", "Repair", "Ready"], 3)
        + '<p><span style="color:#b58900">&#9679;</span> We wait for you: quote of $130</p>'
        + f"<p>{button('Accept quote')} {button('Decline', 'plain')}</p>"
        + row(field("Message to the workshop (optional)", "&nbsp;")),
    ),
}


def page(heading: str, body: str) -> str:
    return (
        f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><header><b>Larkfield</b>'
        f"<span>Jo Arden | Sign out</span></header><main><h1>{heading}</h1>{body}</main>"
    )


def draw(chromium: str, name: str, folder: Path) -> None:
    heading, height, body = PAGES[name]
    source = folder / f"{name}.html"
    source.write_text(page(heading, body), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-lcd-text"]
    size = f"--window-size={WIDTH},{height}"
    target = f"--screenshot={SCREENS / (name + '.png')}"
    subprocess.run([chromium, *options, size, target, source.as_uri()], check=True, capture_output=True, timeout=60)


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("No Chromium found; install it (Debian: apt-get install chromium) and run this again.")
        return 2
    SCREENS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in PAGES:
            draw(chromium, name, Path(folder))
            print(f"{name}.png: {(SCREENS / (name + '.png')).stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The chat page in headless Chromium: it streams, opens citations, shows pictures, and runs nothing it is sent."""

import os
import re
import shutil
from itertools import chain, repeat
from pathlib import Path

import pytest
from desk import build_desk
from serving import AT_MOST, ENDLESS, Recited, Scripted, serving, wait_until

pytestmark = pytest.mark.browser
SCREENS = Path(__file__).parents[1] / "corpus" / "screens"
PICTURE = "![The hire form with its calendar](screens/hire.png)"
HOSTILE = ("<script>window.hurt = 1</script>", "<img src=x onerror='window.hurt = 2'> ",
           "![x](https://evil.example/a.png) ", "[y](javascript:window.hurt=3) ",
           "![z](screens/../../secret.png) ", "<b>bold</b>")  # fmt: skip


@pytest.fixture
def serve(tmp_path):
    """Starts services over the help desk, with one screenshot in its corpus."""
    started = []

    def start(answerer, limits=None):
        desk = build_desk(tmp_path / str(len(started)))
        (desk[0] / "screens").mkdir()
        shutil.copy(SCREENS / "return-form-1-items.png", desk[0] / "screens" / "hire.png")
        context = serving(tmp_path / str(len(started)), answerer, limits, desk=desk)
        started.append(context)
        return context.__enter__()

    yield start
    for context in started:
        context.__exit__(None, None, None)


@pytest.fixture
def visit(browser):
    """Opens the page of a service; at the end nothing may have been reported in the browser's console."""
    open_ones, problems = [], []

    def open_page(service, **options):
        context = browser.new_context(**options)
        open_ones.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * AT_MOST)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.goto(service.address)
        page.problems = problems
        return page

    yield open_page
    for context in open_ones:
        context.close()
    assert [problem for problem in problems if "Failed to load resource" not in problem] == []


def ask(page, question="What is the deposit for a hired tiller?"):
    page.get_by_label("Your question").fill(question)
    page.get_by_label("Your question").press("Enter")


def done(page, said="Answered"):
    page.locator("#status").filter(has_text=said).wait_for()


def test_text_is_shown_while_it_is_written_and_pictures_as_their_link_arrives(serve, visit):
    answerer = Scripted(("Choose the day: ", PICTURE[:30], PICTURE[30:], None, " and press Hire."))
    page = visit(serve(answerer))
    ask(page, "Where do I choose the first day on the hire form?")
    picture = page.locator(".answer img")
    picture.wait_for()
    # Not page.wait_for_function: it polls by eval(), which the page's own content security policy forbids.
    wait_until(lambda: picture.evaluate("image => image.naturalWidth > 0"))
    assert picture.get_attribute("alt") == "The hire form with its calendar"
    assert "press Hire" not in page.locator(".answer").inner_text(), "the answer is not finished yet"
    page.evaluate("window.shown = document.querySelector('.answer img')")
    answerer.go_on.set()
    done(page)
    assert "and press Hire." in page.locator(".answer").inner_text()
    assert page.evaluate("window.shown === document.querySelector('.answer img')"), "the picture was loaded again"


def test_a_citation_opens_its_passage_by_keyboard(serve, visit):
    page = visit(serve(Recited()))
    ask(page)
    done(page)
    citation = page.locator("button.citation").first
    citation.focus()
    page.keyboard.press("Enter")
    passage = page.locator("details.passage.shown")
    assert passage.count() == 1
    assert passage.get_attribute("open") is not None
    assert re.sub(r"\W", "", citation.inner_text()) in passage.locator("summary").inner_text()
    assert "The deposit for a hired tiller is $95" in passage.inner_text()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.parametrize("height", [480, 900])
def test_the_last_passage_opens_above_the_form(serve, visit, height):
    page = visit(serve(Recited()), viewport={"width": 390, "height": height})
    ask(page)
    done(page)
    for times in (1, 2):  # again from the top: the passage is open already
        page.evaluate("scrollTo(0, 0)")
        page.locator("button.citation").last.click()
        summary, form = page.locator("details.shown summary").bounding_box(), page.locator("form").bounding_box()
        assert summary["y"] >= 0, times
        assert summary["y"] + summary["height"] < form["y"], times
    page.get_by_text("Date and token").click()  # the form grows, and what is scrolled to stays above it
    page.locator("button.citation").first.click()
    page.locator("button.citation").last.click()
    summary, form = page.locator("details.shown summary").bounding_box(), page.locator("form").bounding_box()
    assert 0 <= summary["y"] < form["y"] - summary["height"]


def test_text_stays_text(serve, visit):
    service = serve(Scripted(HOSTILE))
    page = visit(service)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    ask(page, "<script>window.hurt = 4</script><img src=x onerror='window.hurt = 5'>")
    done(page)
    assert page.evaluate("window.hurt") is None
    assert page.locator("main script, main b, main a, main img").count() == 0
    assert "".join(HOSTILE).strip() == page.locator(".answer").inner_text().strip()
    assert page.locator(".asked").inner_text().startswith("<script>")
    assert all(url.startswith(service.address) for url in asked)


def test_stop_leaves_the_answer_and_the_next_question_is_answered(serve, visit):
    answerer = Scripted(chain(["one "], repeat("more ")), pause=0.02)  # it stops for no other reason
    page = visit(serve(answerer, ENDLESS))
    ask(page)
    page.locator(".answer").filter(has_text="one").wait_for()
    page.get_by_role("button", name="Stop").press("Enter")
    done(page, "Stopped")
    wait_until(lambda: answerer.ended == 1)
    answerer.pieces = ("short",)
    ask(page)
    done(page)
    assert page.locator(".turn").count() == 2
    stopped, answered = page.locator(".turn").all()
    assert "Stopped before the end." in stopped.inner_text(), "still told after the next question"
    assert answered.locator(".bad-note").count() == 0


def test_a_failed_answer_says_so_in_its_own_turn(serve, visit):
    answerer = Scripted(("one ", None))
    page = visit(serve(answerer, {"workers": 1}))
    ask(page)
    page.locator(".answer").filter(has_text="one").wait_for()
    answerer.pieces = ("short",)
    page.route("**/stream", lambda route: route.abort("connectionreset"))  # for the next question
    page.get_by_role("button", name="Stop").click()
    answerer.go_on.set()
    ask(page, "Is it open?")
    done(page, "cannot be reached")
    page.unroute("**/stream")
    ask(page, "What is the deposit?")
    done(page)
    stopped, failed = page.locator(".turn .bad-note").all()
    assert stopped.inner_text() == "Stopped before the end."
    assert failed.inner_text().startswith("Not finished: The service cannot be reached")


def test_an_error_event_is_told_in_the_turn(serve, visit):
    page = visit(serve(Scripted(repeat("word ")), {"events": 20}))
    ask(page)
    done(page, "longer than 20 events")
    assert "Not finished: The answer is longer than 20 events" in page.locator(".turn").inner_text()


def test_the_page_asks_for_nothing_that_is_missing(serve, visit):
    page = visit(serve(Scripted()))
    ask(page)
    done(page)
    assert page.problems == []
    icon = page.locator("link[rel=icon]").evaluate("link => link.href")  # a headless browser does not fetch it
    response = page.request.get(icon)
    assert (response.status, response.headers["content-type"]) == (200, "image/svg+xml")


def test_errors_are_told_and_the_question_is_kept(serve, visit):
    page = visit(serve(Scripted(), {"question": 20}))
    ask(page)
    done(page, "shorten it to 20 or fewer")
    assert page.get_by_label("Your question").input_value().startswith("What is the deposit")
    page.get_by_text("Date and token").click()
    page.get_by_label("Staff token").fill("nonsense")
    ask(page, "Short?")
    done(page, "not known")


def test_a_staff_token_and_a_date_are_sent(serve, visit):
    service = serve(Recited())
    page = visit(service)
    page.get_by_text("Date and token").click()
    page.get_by_label("As of").fill("2026-05-01")
    page.get_by_label("Staff token").fill(service.tokens["ann", "staff"])
    ask(page, "What is the tiller deposit, and who may waive the deposit for the garden club?")
    done(page)
    text = page.locator("main").inner_text()
    assert "GC-77" in text
    assert "$80" in text
    assert "audience staff" in text


def test_a_broken_connection_is_taken_up_again(serve, visit):
    answerer = Scripted(("one ", "two ", None, "three"))
    page = visit(serve(answerer, ENDLESS | {"alone": 6000.0}))
    cut = {"left": 1}

    def once(route):
        if cut["left"]:
            cut["left"] = 0
            return route.abort("connectionreset")
        return route.continue_()

    page.route("**/stream", once)
    ask(page)
    page.locator(".answer").filter(has_text="two").wait_for()
    answerer.go_on.set()
    done(page)
    assert page.locator(".answer").inner_text() == "one two three"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900])
def test_it_fits_and_can_be_read_in_light_and_dark(serve, visit, tmp_path, scheme, width):
    page = visit(serve(Recited()), color_scheme=scheme, viewport={"width": width, "height": 900})
    ask(page)
    done(page)
    page.locator("button.citation").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "one has to scroll sideways"
    style = "getComputedStyle(document.body)"
    ink, paper = page.evaluate(f"[{style}.color, {style}.backgroundColor]")
    bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ink, paper)]
    assert (bright[0] < bright[1]) == (scheme == "light")
    folder = Path(os.environ.get("LAB_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"chat-{scheme}-{width}.png", full_page=True)

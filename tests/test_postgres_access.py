"""An index in PostgreSQL that is not there, not ours or not for everybody: one sentence each, never with a password."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from garden import front_matter, write
from index_state import check, state
from test_store import STAFF, make_entry
from test_updates import Course

from labsupport import cli
from labsupport.pipeline import LabError
from labsupport.pipeline.updates import ingest

psycopg = pytest.importorskip("psycopg")

from test_engines import empty_index  # noqa: E402

from labsupport.engines.address import Address, shown  # noqa: E402
from labsupport.engines.postgres import PostgresEngine, PostgresStore  # noqa: E402
from labsupport.engines.postgres_schema import FORMAT, need_pgvector  # noqa: E402

SECRET = "s3cret"


@pytest.fixture
def url(pg_server):
    return pg_server.emptied()


@pytest.fixture
def course(tmp_path, url, embedder):
    made = Course(tmp_path, PostgresEngine(url), embedder)
    made.ingest()
    return made


def test_a_schema_of_others_is_refused_and_left_as_it_is(url, pg_server, tmp_path, embedder):
    pg_server.run("CREATE SCHEMA lab_index", "CREATE TABLE lab_index.chunks (id int)")
    write(tmp_path, "pump.md", front_matter(doc_id="pump", title="Pump") + "# Pump\n\nDrain it.\n")
    for rebuild in (False, True):
        with pytest.raises(LabError, match="no index of this course, and it was left as it is"):
            ingest(tmp_path, PostgresEngine(url), embedder, rebuild=rebuild)
    assert pg_server.run("SELECT * FROM lab_index.chunks") == []


@pytest.mark.parametrize("spoil, says", [
    (f"UPDATE lab_index.state SET format = {FORMAT - 1}", "older format"),
    ("DROP TABLE lab_index.documents CASCADE", "damaged"), ("DELETE FROM lab_index.state", "older format")])
def test_a_rebuild_replaces_an_index_that_cannot_be_read(course, pg_server, spoil, says):
    before = state(course.index)
    pg_server.run(spoil)
    with pytest.raises(LabError, match=f"{says}.*--rebuild"):
        course.ingest()
    course.ingest(rebuild=True)
    assert state(course.index) == before
    check(course.index)


def test_a_newer_format_is_refused_also_by_a_rebuild(course, pg_server):
    pg_server.run(f"UPDATE lab_index.state SET format = {FORMAT + 1}")
    for rebuild in (False, True):
        with pytest.raises(LabError, match="newer version of this program"):
            course.ingest(rebuild=rebuild)


def test_vectors_that_do_not_fit_are_refused(url):
    with empty_index(url) as store:
        before = store.generation()
        with pytest.raises(LabError, match="expected 2 dimensions"):
            store.replace(add=[make_entry("a", "Text.", vectors=[[1, 0, 0]])])
        assert store.generation() == before and store.documents() == []


def test_no_index_yet(url):
    with pytest.raises(LabError, match=r"No index at postgresql://postgres@/postgres\?host=.*Build it with: .*ingest"):
        PostgresStore(url)
    assert PostgresEngine(url).open() is None


# Who may do what


@pytest.fixture
def users(pg_server):
    """Two users with a password: one may read, one may do nothing. The password is asked for while this lasts."""
    rules = Path(pg_server.folder) / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all reader,nobody scram-sha-256\n{before}")
    pg_server.run(f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'", f"CREATE ROLE nobody LOGIN PASSWORD '{SECRET}'",
               "ALTER ROLE reader SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    yield lambda name, password=SECRET: pg_server.url.replace("postgres:@", f"{name}:{password}@")
    rules.write_text(before)
    pg_server.run("SELECT pg_reload_conf()", "DROP OWNED BY reader", "DROP ROLE reader", "DROP ROLE nobody")


def test_who_may_only_read_can_search(course, users, pg_server):
    pg_server.run("GRANT USAGE ON SCHEMA lab_index TO reader",
                  "GRANT SELECT ON ALL TABLES IN SCHEMA lab_index TO reader")
    with PostgresStore(users("reader")) as reader, reader.snapshot():
        assert reader.keyword(["sharpen"], STAFF, 9) and reader.dense(course.embedder._vector("blade"), STAFF, 9)
    write(course.corpus, "pump.md", front_matter(doc_id="pump", title="Pump") + "# Pump\n\nDrain it.\n")
    pg_server.run("ALTER ROLE reader SET default_transaction_read_only = off")
    with pytest.raises(LabError, match="user reader may not do this") as caught:
        ingest(course.corpus, PostgresEngine(users("reader")), course.embedder)
    assert SECRET not in str(caught.value)


def test_a_server_that_takes_no_writes_is_named(course, users, pg_server):
    """As a replica does not, and no transaction of this user, whatever else it may do."""
    pg_server.run("GRANT ALL ON SCHEMA lab_index TO reader", "GRANT ALL ON ALL TABLES IN SCHEMA lab_index TO reader")
    (course.folder / "hedge.md").unlink()
    with pytest.raises(LabError, match="takes no writes; it may be a replica"):
        ingest(course.corpus, PostgresEngine(users("reader")), course.embedder)


def test_info_does_not_print_the_password(course, users, pg_server, capsys):
    pg_server.run("GRANT USAGE ON SCHEMA lab_index TO reader",
                  "GRANT SELECT ON ALL TABLES IN SCHEMA lab_index TO reader")
    for options in ([], ["--json"]):
        assert cli.run(["info", "--index", users("reader"), *options]) == 0
        out = capsys.readouterr().out
        assert "postgresql://reader@/postgres?host=" in out and SECRET not in out


@pytest.mark.parametrize("password", ["wr0ng-pass", ""])
def test_a_wrong_or_missing_password(course, users, password, monkeypatch):
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    with pytest.raises(LabError, match="does not let the user in.*PGPASSWORD") as caught:
        PostgresStore(users("reader", password))
    assert not password or password not in str(caught.value)


def test_a_user_without_rights(url, users):
    with pytest.raises(LabError, match="CREATE EXTENSION|may not do this"):
        PostgresEngine(users("nobody")).rebuild([], {"dimensions": "2"})


def test_no_such_user_database_or_server(pg_server, users):
    for wrong, says in [
            (pg_server.url.replace("postgres:@", "ghost:pa55word@"), "does not let the user in"),
            (pg_server.url.replace("/postgres?", "/nowhere?"), "no database nowhere.*createdb nowhere"),
            (pg_server.url + "-gone", "No PostgreSQL server answers"),
            ("postgresql://u:pa55word@127.0.0.1:1/lab", r"No PostgreSQL server answers at postgresql://u@127.0.0.1:1/lab"),
            ("postgresql://u:pa55word@no-such-host.invalid/lab", "No PostgreSQL server answers")]:
        with pytest.raises(LabError, match=says) as caught:
            PostgresStore(wrong)
        assert "pa55word" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("url", [
    "postgresql://u:pa55/word@host/db", "postgresql://u:pa55@word@host/db", "postgresql://u:pa55%word@host/db",
    "postgresql://u:pa55word@host:port/db", "postgresql://u:pa55word@host/db?passwort=pa55word",
    "postgresql://u:pa55[word@host/db", "postgresql://u:pa55word@[::1/db"])
def test_a_broken_address_is_refused_without_repeating_it(url):
    with pytest.raises(LabError) as caught:
        Address(url).connect()
    assert "pa55" not in str(caught.value) and "word@" not in str(caught.value)


def test_what_is_shown_of_an_address():
    assert shown("postgresql://u:pa55word@h:5433/db?sslmode=require") == "postgresql://u@h:5433/db"
    assert shown("postgres://h/db") == "postgresql://h/db"
    assert Address("postgresql://u:pa55word@h/db").hide("a\nserver that says pa55word.") == "a server that says ***"
    assert shown("postgresql://u@/db?host=/tmp/x&password=pa55word") == "postgresql://u@/db?host=/tmp/x"
    assert shown("postgresql://a:1,b:2/db?target_session_attrs=prefer-standby") == "postgresql://a,b:1,2/db"


class Refusing:
    """A connection to a server that lacks something."""

    def __init__(self, error=None, version=None, encoding="UTF8"):
        self.error, self.version, self.encoding = error, version, encoding

    def execute(self, sql):
        if sql.startswith("CREATE"):
            raise self.error
        self.row = (self.encoding,) if "encoding" in sql else self.version and (self.version,)
        return self

    def fetchone(self):
        return self.row


@pytest.mark.parametrize("server_without, says", [
    (Refusing(psycopg.errors.UndefinedFile("x")), "has no pgvector. Install it there"),
    (Refusing(psycopg.errors.FeatureNotSupported("x")), "has no pgvector. Install it there"),
    (Refusing(psycopg.errors.InsufficientPrivilege("x")), "u may not do it.*CREATE EXTENSION vector"),
    (Refusing(version="0.7.4"), "pgvector 0.7.4 .* too old: 0.8 is needed"),
    (Refusing(encoding="LATIN1"), "not in UTF-8")])
def test_a_server_without_what_is_needed(server_without, says):
    with pytest.raises(LabError, match=says):
        need_pgvector(server_without, Address("postgresql://u:pa55word@h/db"))


def test_without_psycopg_one_sentence():
    code = ("import sys; sys.modules['psycopg'] = None; from labsupport.cli import run; "
            "sys.exit(run(['info', '--index', 'postgresql://localhost/lab']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == ("An index in PostgreSQL needs psycopg, which is not installed. Install it with: "
                           "python -m pip install 'psycopg[binary]'\n")

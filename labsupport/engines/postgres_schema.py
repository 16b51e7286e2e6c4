"""The tables of an index in PostgreSQL, in a schema of their own, made for one machine and for many.

A row of `chunks` holds text, filters and vector; a row of `postings` is a word of a chunk, as a number, with its
places. The rows can be spread over machines by `doc_id`: every key holds it, and what refers to a row has the same one,
so no reference and no join crosses machines. docs/engines.md has the commands and says what was tried.
"""

from __future__ import annotations

from labsupport.pipeline import LabError
from labsupport.pipeline.sqlite_file import Replaceable

from .address import Address, errors, psycopg

SCHEMA = "lab_index"
OF_SEARCH = ("documents", "chunks", "postings", "meta")  # and state, which says what they hold
FORMAT = 1  # of the tables
PGVECTOR = (0, 8)  # the first version that can go on searching its index until enough rows pass the filters
INDEXABLE = 2000  # dimensions: the most that HNSW takes
NEAREST = f"{SCHEMA}.chunks_nearest"

# COLLATE "C": ids and versions are sorted by their bytes, as SQLite sorts them, whatever language the server speaks.
# STATISTICS 0: the samples PostgreSQL keeps of a column would be one more place where deleted text can be found.
TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.state (
    id integer PRIMARY KEY CHECK (id = 1), format integer NOT NULL, generation uuid NOT NULL,
    dimensions integer NOT NULL, chunks bigint NOT NULL, words bigint NOT NULL, untidy boolean NOT NULL);
CREATE TABLE {schema}.meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE {schema}.documents (
    doc_id text COLLATE "C", version text COLLATE "C", title text NOT NULL, doc_type text NOT NULL,
    audience text NOT NULL, language text NOT NULL, effective_from date NOT NULL, effective_to date,
    owner text NOT NULL, path text NOT NULL, sha256 text NOT NULL, chunks integer NOT NULL, words bigint NOT NULL,
    PRIMARY KEY (doc_id, version));
CREATE TABLE {schema}.chunks (
    chunk_id text COLLATE "C" NOT NULL, doc_id text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL,
    seq integer NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, section text, breadcrumb text[] NOT NULL,
    parent text, kind text NOT NULL, content_kind text NOT NULL, part integer NOT NULL, parts integer NOT NULL,
    section_start integer NOT NULL, table_header text NOT NULL, body text NOT NULL,
    title text NOT NULL, doc_type text NOT NULL, audience text NOT NULL, language text NOT NULL,
    effective_from date NOT NULL, effective_to date, owner text NOT NULL,
    text_sha256 bytea NOT NULL, length integer NOT NULL, embedding vector({dimensions}) NOT NULL,
    PRIMARY KEY (doc_id, chunk_id),
    FOREIGN KEY (doc_id, version) REFERENCES {schema}.documents ON DELETE CASCADE);
CREATE TABLE {schema}.postings (
    doc_id text COLLATE "C", chunk_id text COLLATE "C", word bigint, places integer[] NOT NULL,
    PRIMARY KEY (doc_id, chunk_id, word),
    FOREIGN KEY (doc_id, chunk_id) REFERENCES {schema}.chunks ON DELETE CASCADE);
CREATE INDEX postings_by_word ON {schema}.postings (word);
CREATE INDEX chunks_of_document ON {schema}.chunks (doc_id, version);
CREATE INDEX chunks_by_id ON {schema}.chunks (chunk_id);
CREATE INDEX chunks_by_text ON {schema}.chunks (text_sha256);
ALTER TABLE {schema}.chunks ALTER embedding SET STORAGE MAIN, ALTER embedding SET STATISTICS 0,
    ALTER section SET STATISTICS 0, ALTER breadcrumb SET STATISTICS 0, ALTER parent SET STATISTICS 0,
    ALTER table_header SET STATISTICS 0, ALTER body SET STATISTICS 0, ALTER title SET STATISTICS 0,
    ALTER owner SET STATISTICS 0;
ALTER TABLE {schema}.documents ALTER title SET STATISTICS 0, ALTER owner SET STATISTICS 0, ALTER path SET STATISTICS 0
"""
# The inner product of vectors of length 1 is their cosine.
HNSW = f"CREATE INDEX chunks_nearest ON {SCHEMA}.chunks USING hnsw (embedding vector_ip_ops)"


class NoIndex(LabError):
    """A database that holds no index yet."""


def look_at(connection: psycopg.Connection, address: Address) -> str:
    """"ours" or "none". Raises LabError where something else has the name of our schema."""
    sql = "SELECT to_regnamespace(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL"
    taken, state, chunks = connection.execute(sql, [SCHEMA, f"{SCHEMA}.state", f"{SCHEMA}.chunks"]).fetchone()
    if not taken:
        return "none"
    if not (state and chunks):
        raise LabError(f"{address.shown} has a schema {SCHEMA} that is no index of this course, and it was left as it "
                       "is. Name another database with --index.")
    return "ours"


def check_format(connection: psycopg.Connection, address: Address) -> None:
    """Refuse tables that this program does not read."""
    row = connection.execute(f"SELECT format FROM {SCHEMA}.state").fetchone()
    found = row[0] if row else 0
    if found > FORMAT:
        raise LabError(f"{address.shown} was written by a newer version of this program (format {found}, this one "
                       f"reads {FORMAT}). Update the program, or name another database with --index.")
    if found < FORMAT:
        raise Replaceable(f"{address.shown} has an older format ({found}, this program reads {FORMAT}). Build it anew "
                          f"with: {address.build} --rebuild")


def create(connection: psycopg.Connection, address: Address, dimensions: int) -> None:
    """Make the tables of an empty index, inside the caller's transaction."""
    need_pgvector(connection, address)
    for statement in TABLES.format(schema=SCHEMA, dimensions=int(dimensions)).split(";\n"):
        connection.execute(statement)
    connection.execute(f"INSERT INTO {SCHEMA}.state VALUES (1, %s, gen_random_uuid(), %s, 0, 0, false)",
                       [FORMAT, dimensions])


def need_pgvector(connection: psycopg.Connection, address: Address) -> None:
    """Switch pgvector on in this database. Raises LabError where the server has none, or too old a one."""
    installed = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    if connection.execute("SHOW server_encoding").fetchone()[0] != "UTF8":
        raise LabError(f"The database {address.shown} is not in UTF-8. Make one that is, for example with: createdb "
                       "--encoding UTF8 --template template0 NAME")
    if connection.execute(installed).fetchone() is None:
        try:
            connection.execute("CREATE EXTENSION vector")
        except errors.InsufficientPrivilege:
            raise LabError(f"pgvector is not switched on in {address.shown}, and {address.user or 'this user'} may not "
                           "do it. Have this run in that database: CREATE EXTENSION vector") from None
        except (errors.UndefinedFile, errors.FeatureNotSupported):
            raise LabError(f"The server of {address.shown} has no pgvector. Install it there (a package such as "
                           "postgresql-18-pgvector, or the image pgvector/pgvector) and try again.") from None
    version = connection.execute(installed).fetchone()[0]
    if tuple(int(part) for part in version.split(".")[:2]) < PGVECTOR:
        raise LabError(f"pgvector {version} in {address.shown} is too old: {'.'.join(map(str, PGVECTOR))} is needed. "
                       "Have it updated, then run in that database: ALTER EXTENSION vector UPDATE")

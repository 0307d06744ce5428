"""Creates our tables in an empty database, and adds the missing parts to those of an older version."""

from typing import Final

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select, update
from sqlalchemy.schema import CreateColumn

from callwright.database.tables import TABLES, lock
from callwright.errors import ConfigError

# The number of the present schema, raised with each change of the tables.
SCHEMA: Final = "0007"
VERSIONS: Final = Table("callwright_schema", MetaData(), Column("version_num", String(32), primary_key=True))


def migrate(connection: Connection) -> None:
    """Bring an empty database, or one with an older schema, to the present schema, in the connection's transaction.

    Each change so far has only added tables, columns with a default, and indexes: a comparison with the declared
    tables finds them. A change of another kind needs a step of its own here. Raises `ConfigError` for a newer schema.
    """
    if _version(connection) == SCHEMA:  # the usual start: without a lock
        return
    lock(connection, "cw-migr")
    version = _version(connection)
    if version is None:
        TABLES.create_all(connection, checkfirst=False)  # fails if another program has a table of the same name
        VERSIONS.create(connection)
        connection.execute(insert(VERSIONS), {"version_num": SCHEMA})
    elif version > SCHEMA:
        raise ConfigError(
            f"it has schema {version}, this Callwright knows up to {SCHEMA}. A newer one has used it: update, or "
            "choose another database."
        )
    elif version < SCHEMA:
        _add_missing(connection)
        connection.execute(update(VERSIONS).values(version_num=SCHEMA))


def _version(connection: Connection) -> str | None:
    """The schema of a database; None if it has none of our tables."""
    return connection.scalar(select(VERSIONS)) if inspect(connection).has_table(VERSIONS.name) else None


def _add_missing(connection: Connection) -> None:
    """Create the tables, columns and indexes that a database lacks."""
    TABLES.create_all(connection)
    found = inspect(connection)
    for table in TABLES.sorted_tables:
        columns = {column["name"] for column in found.get_columns(table.name)}
        for column in (column for column in table.columns if column.name not in columns):
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
        indexes = {index["name"] for index in found.get_indexes(table.name)}
        for index in (index for index in table.indexes if index.name not in indexes):
            index.create(connection)

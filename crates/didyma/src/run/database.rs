//! The database of a run: how it is made, opened, recognised and protected.
//!
//! In write-ahead mode with full synchronisation a transaction is on the disk when it returns, readers do not wait for
//! the writer, and a process or machine that stops at any moment leaves all of a transaction or nothing. The number in
//! `application_id` says whose file it is, the one in `user_version` is the version of the format; they are written in
//! the same transaction as the rest, so a database without them is one in which nothing has begun.

use super::faults::Stored;
use crate::error::{Fault, FileFault};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// "Didy".
const APPLICATION: i32 = 0x4469_6479;
/// Version of the format that this program writes.
const FORMAT: u32 = 2;
/// Version of the format whose numbers are f32.
pub(super) const SINGLE: u32 = 1;
/// How long to wait for a program that reads the database while it is tidied.
const PATIENCE: Duration = Duration::from_secs(10);

/// SQLite has no checksums of what it stores, so tables whose content enters results have their own.
const TABLES: &str = "
    CREATE TABLE run (version TEXT NOT NULL, config TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
    CREATE TABLE simulations (
        round INTEGER NOT NULL, \"index\" INTEGER NOT NULL,
        theta BLOB NOT NULL, x BLOB, failure TEXT,
        crc INTEGER NOT NULL,
        PRIMARY KEY (round, \"index\")
    ) STRICT;
    CREATE TABLE rounds (
        round INTEGER PRIMARY KEY, json TEXT NOT NULL, crc INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE events (
        id INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, json TEXT NOT NULL
    ) STRICT;
";

/// What the database says about its run.
pub(super) struct Meta {
    pub version: String,
    pub config: String,
    format: u32,
}

impl Meta {
    /// Requires the format that this program writes, where something is to be added.
    pub(super) fn current(self) -> Stored<Self> {
        if self.format < FORMAT {
            let (found, known) = (self.format, FORMAT);
            return Err(Fault::Database(FileFault::Older { found, known }));
        }
        Ok(self)
    }
}

/// Opens a database for a run to begin in; nothing is written yet.
pub(super) fn make(path: &Path) -> Stored<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
}

/// Writes the first entries, all of them or none.
pub(super) fn begin(connection: &mut Connection, config: &str) -> Stored<Meta> {
    protect(connection)?;
    let (version, config) = (env!("CARGO_PKG_VERSION").to_owned(), config.to_owned());
    let meta = Meta { version, config, format: FORMAT };
    let crc = checksum(&[meta.version.as_bytes(), meta.config.as_bytes()]);
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction
        .execute("INSERT INTO run VALUES (?1, ?2, ?3)", (&meta.version, &meta.config, crc))?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(meta)
}

/// Opens the database of a run to continue it. All of it is checked, since writing would make damage worse.
pub(super) fn open(path: &Path) -> Stored<(Connection, Meta)> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let meta = recognise(&connection)?.current()?;
    let check = "PRAGMA integrity_check(1)";
    let verdict: String = connection.query_row(check, [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Fault::corrupted(verdict));
    }
    protect(&connection)?;
    Ok((connection, meta))
}

/// Opens the database of a run to read it, while another process may write.
pub(super) fn read(path: &Path) -> Stored<(Connection, Meta)> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let meta = match recognise(&connection) {
        Err(Fault::Refused { .. }) if nothing_pending(path) => {
            // Readers and writer meet in a file beside the database. Where it cannot be made nobody can write, so it
            // is not needed, and SQLite is told so.
            let path = immutable(path);
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            let connection = Connection::open_with_flags(path, flags)?;
            let meta = recognise(&connection)?;
            return Ok((connection, meta));
        }
        other => other?,
    };
    Ok((connection, meta))
}

/// The CRC-32 of these parts and of where each ends.
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

/// An error unless the stored checksum is the one of what was found.
pub(super) fn check(stored: u32, found: u32, what: &str) -> Stored<()> {
    match stored == found {
        true => Ok(()),
        false => Err(Fault::corrupted(format!("{what} does not match its checksum"))),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Stored<Connection> {
    // An absolute path cannot be taken for an address: "file:" begins one.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Sets how transactions are made durable; the answers are the settings, of no interest here.
fn protect(connection: &Connection) -> Stored<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(())
}

/// Whose database is it, and can this program read it?
pub(super) fn recognise(connection: &Connection) -> Stored<Meta> {
    let tables: u32 = value(connection, "SELECT count(*) FROM sqlite_schema")?;
    let application: i32 = value(connection, "PRAGMA application_id")?;
    let format = format(connection)?;
    match (application, format) {
        (0, 0) if tables == 0 => return Err(Fault::NotBegun),
        (APPLICATION, 1..=FORMAT) => {}
        (APPLICATION, 0) => return Err(Fault::corrupted("its format has no version")),
        (APPLICATION, found) => {
            return Err(Fault::Database(FileFault::Newer { found, known: FORMAT }));
        }
        _ => return Err(Fault::foreign("it is a database of another program")),
    }
    check_tables(connection)?;
    let (version, config, crc): (String, String, u32) =
        connection.query_row("SELECT version, config, crc FROM run", [], |row| row.try_into())?;
    check(crc, checksum(&[version.as_bytes(), config.as_bytes()]), "its configuration")?;
    Ok(Meta { version, config, format })
}

/// The version of the format.
pub(super) fn format(connection: &Connection) -> rusqlite::Result<u32> {
    value(connection, "PRAGMA user_version")
}

/// An error unless the tables are the ones that a run makes. A view in the place of one may have rows without end, and a
/// trigger may do anything when something is stored.
fn check_tables(connection: &Connection) -> Stored<()> {
    let same = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql = ?1";
    let mut same = connection.prepare(same)?;
    let triggers: u32 =
        value(connection, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'")?;
    let mut own = triggers == 0;
    for table in TABLES.split(';').map(str::trim).filter(|table| !table.is_empty()) {
        own &= same.query_row([table], |row| row.get::<_, u32>(0))? == 1;
    }
    match own {
        true => Ok(()),
        false => Err(Fault::corrupted("its tables are not those of a run")),
    }
}

fn value<T: FromSql>(connection: &Connection, query: &str) -> rusqlite::Result<T> {
    connection.query_row(query, [], |row| row.get(0))
}

/// Whether all that was stored is in the database itself, nothing in the log that is written ahead of it.
fn nothing_pending(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |found| found.len() == 0)
}

/// The address of a database that nobody changes.
fn immutable(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut address = String::from(if cfg!(windows) { "file:///" } else { "file:" });
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => address.push('/'),
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                address.push(char::from(byte));
            }
            b':' if cfg!(windows) => address.push(':'),
            _ => write!(address, "%{byte:02X}").expect("a string takes all"),
        }
    }
    address + "?immutable=1"
}

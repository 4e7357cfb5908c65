//! What a run stores: simulations, finished rounds, events.

use super::database::{SINGLE, check, checksum, format};
use super::faults::Stored;
use crate::error::Fault;
use crate::inference::SimulatedRow;
use rusqlite::{Connection, Row};
use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

/// Stores rows that are new, all or none.
pub(super) fn store(connection: &mut Connection, rows: &[SimulatedRow]) -> Stored<()> {
    write(connection, rows, "INSERT OR IGNORE")
}

fn write(connection: &mut Connection, rows: &[SimulatedRow], insert: &str) -> Stored<()> {
    let transaction = connection.transaction()?;
    {
        let insert = format!("{insert} INTO simulations VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        let mut insert = transaction.prepare(&insert)?;
        for row in rows {
            let theta = to_bytes(&row.theta);
            let (x, failure) = match &row.x {
                Ok(x) => (Some(to_bytes(x)), None),
                Err(failure) => (None, Some(failure)),
            };
            let failure = failure.map(String::as_str);
            let crc = row_checksum(row.round, row.index, &theta, x.as_deref(), failure);
            insert.execute((row.round, row.index, &theta, &x, failure, crc))?;
        }
    }
    Ok(transaction.commit()?)
}

/// Puts rows in place of those that are there, all or none.
pub(super) fn replace(connection: &mut Connection, rows: &[SimulatedRow]) -> Stored<()> {
    write(connection, rows, "INSERT OR REPLACE")
}

/// All simulations. A database that holds others than those of these rounds, so many in each, is damaged: whoever makes
/// room for a round by its number would need more memory than there is.
pub(super) fn rows(
    connection: &Connection,
    rounds: RangeInclusive<u32>,
    simulations: usize,
) -> Stored<Vec<SimulatedRow>> {
    select(connection, "1 = 1", (), |row| {
        rounds.contains(&row.round) && (row.index as usize) < simulations
    })
}

/// Simulations of a round, from one index to another.
pub(super) fn between(
    connection: &Connection,
    round: u32,
    first: u32,
    last: u32,
) -> Stored<Vec<SimulatedRow>> {
    let which = "round = ?1 AND \"index\" BETWEEN ?2 AND ?3";
    select(connection, which, (round, first, last), |_| true)
}

fn select(
    connection: &Connection,
    which: &str,
    numbers: impl rusqlite::Params,
    can_be: impl Fn(&SimulatedRow) -> bool,
) -> Stored<Vec<SimulatedRow>> {
    let columns = "round, \"index\", theta, x, failure, crc";
    let query = format!("SELECT {columns} FROM simulations WHERE {which} ORDER BY 1, 2");
    let mut statement = connection.prepare(&query)?;
    let mut found = statement.query(numbers)?;
    let mut rows: Vec<SimulatedRow> = Vec::new();
    let mut dim_x = None;
    let single = format(connection)? == SINGLE;
    while let Some(record) = found.next()? {
        let row = decode(record, single)?;
        // In their order each is there once, so that they have an end, whatever the file says.
        let follows = rows.last().is_none_or(|r| (r.round, r.index) < (row.round, row.index));
        if !follows || !can_be(&row) {
            let (round, index) = (row.round, row.index);
            let why = format!("simulation {index} of round {round} is none of the run");
            return Err(Fault::corrupted(why));
        }
        let dim_theta = rows.first().map_or(row.theta.len(), |first| first.theta.len());
        let len_x = row.x.as_ref().ok().map(Vec::len);
        dim_x = dim_x.or(len_x);
        if row.theta.len() != dim_theta || (len_x.is_some() && len_x != dim_x) {
            let (round, index) = (row.round, row.index);
            let why = format!("simulation {index} of round {round} has another size than others");
            return Err(Fault::corrupted(why));
        }
        rows.push(row);
    }
    Ok(rows)
}

pub(super) fn counts(connection: &Connection) -> Stored<(usize, usize)> {
    let query = "SELECT count(*), count(failure) FROM simulations";
    let (all, failed): (u32, u32) = connection.query_row(query, [], |row| row.try_into())?;
    Ok((all as usize, failed as usize))
}

/// How many simulations of a round are stored.
pub(super) fn count(connection: &Connection, round: u32) -> Stored<usize> {
    let query = "SELECT count(*) FROM simulations WHERE round = ?1";
    let count: u32 = connection.query_row(query, [round], |row| row.get(0))?;
    Ok(count as usize)
}

/// Deletes the failed simulations of a round; returns how many there were.
pub(super) fn forget_failures(connection: &Connection, round: u32) -> Stored<usize> {
    let delete = "DELETE FROM simulations WHERE round = ?1 AND failure IS NOT NULL";
    Ok(connection.execute(delete, [round])?)
}

fn decode(record: &Row, single: bool) -> Stored<SimulatedRow> {
    let to_numbers = if single { to_singles } else { to_numbers };
    let (round, index): (u32, u32) = (record.get(0)?, record.get(1)?);
    let what = format!("simulation {index} of round {round}");
    let theta = record.get_ref(2)?.as_blob().map_err(|_| Fault::corrupted(&what))?;
    let (x, failure): (Option<Vec<u8>>, Option<String>) = (record.get(3)?, record.get(4)?);
    let crc = row_checksum(round, index, theta, x.as_deref(), failure.as_deref());
    check(record.get(5)?, crc, &what)?;
    let odd = || Fault::corrupted(format!("{what} ends within a number"));
    let x = match (x, failure) {
        (Some(x), None) => Ok(to_numbers(&x).ok_or_else(odd)?),
        (None, Some(failure)) => Err(failure),
        _ => return Err(Fault::corrupted(format!("{what} is neither done nor failed"))),
    };
    Ok(SimulatedRow { round, index, theta: to_numbers(theta).ok_or_else(odd)?, x })
}

fn row_checksum(
    round: u32,
    index: u32,
    theta: &[u8],
    x: Option<&[u8]>,
    failure: Option<&str>,
) -> u32 {
    let failure = failure.unwrap_or_default().as_bytes();
    let (round, index) = (round.to_le_bytes(), index.to_le_bytes());
    checksum(&[&round, &index, theta, x.unwrap_or_default(), failure])
}

fn to_bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn to_numbers(bytes: &[u8]) -> Option<Vec<f64>> {
    let (numbers, rest) = bytes.as_chunks();
    let numbers = numbers.iter().map(|&number| f64::from_le_bytes(number));
    rest.is_empty().then(|| numbers.collect())
}

fn to_singles(bytes: &[u8]) -> Option<Vec<f64>> {
    let (numbers, rest) = bytes.as_chunks();
    let numbers = numbers.iter().map(|&number| f32::from_le_bytes(number).into());
    rest.is_empty().then(|| numbers.collect())
}

pub(super) fn finish_round(connection: &Connection, round: u32, json: &str) -> Stored<()> {
    let crc = checksum(&[&round.to_le_bytes(), json.as_bytes()]);
    connection.execute("INSERT OR REPLACE INTO rounds VALUES (?1, ?2, ?3)", (round, json, crc))?;
    Ok(())
}

/// The results of the finished rounds, from the first on; there are no more than `most`.
pub(super) fn rounds(connection: &Connection, most: u32) -> Stored<Vec<String>> {
    let mut statement = connection.prepare("SELECT round, json, crc FROM rounds ORDER BY 1")?;
    let mut found = statement.query([])?;
    let mut rounds = Vec::new();
    while let Some(record) = found.next()? {
        let (round, json, crc): (u32, String, u32) = record.try_into()?;
        let what = format!("the result of round {round}");
        check(crc, checksum(&[&round.to_le_bytes(), json.as_bytes()]), &what)?;
        if round as usize != rounds.len() + 1 || round > most {
            return Err(Fault::corrupted(format!("{what} is none of the run")));
        }
        rounds.push(json);
    }
    Ok(rounds)
}

pub(super) fn log(connection: &Connection, kind: &str, json: &str) -> Stored<()> {
    // A clock before 1970 is wrong, and no reason to stop a run.
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let insert = "INSERT INTO events (time, kind, json) VALUES (?1, ?2, ?3)";
    connection.execute(insert, (time, kind, json))?;
    Ok(())
}

pub(super) fn events(connection: &Connection) -> Stored<Vec<(f64, String, String)>> {
    let mut statement = connection.prepare("SELECT time, kind, json FROM events ORDER BY id")?;
    let events = statement.query_map([], |record| record.try_into())?;
    Ok(events.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::database;
    use super::*;

    /// A database of version 1, whose numbers are f32, is read; nothing is added to it.
    #[test]
    fn numbers_of_the_first_format_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.db");
        let mut connection = database::make(&path).unwrap();
        database::begin(&mut connection, "{}").unwrap();
        let blob =
            |numbers: &[f32]| numbers.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let (theta, x) = (blob(&[0.5, 1.5]), blob(&[-3.0]));
        let crc = row_checksum(1, 0, &theta, Some(&x), None);
        let insert = "INSERT INTO simulations VALUES (1, 0, ?1, ?2, NULL, ?3)";
        connection.execute(insert, (&theta, &x, crc)).unwrap();
        connection.pragma_update(None, "user_version", SINGLE).unwrap();
        let row = &rows(&connection, 1..=1, 1).unwrap()[0];
        assert_eq!((&*row.theta, row.x.as_deref()), (&[0.5, 1.5][..], Ok(&[-3.0][..])));
        drop(connection);
        assert!(database::read(&path).is_ok());
        let told = database::open(&path).err().unwrap();
        assert!(format!("{told:?}").contains("Older { found: 1, known: 2 }"), "{told:?}");
    }
}

//! A posterior at many observations at once: the rows that each has by itself, and the law that they follow.

use super::posterior::{masses_by, mixture, regions, trained};
use super::{run, small, tiny};
use didyma::config::{Algorithm, Config, Profile};
use didyma::rng::{Purpose, Streams};
use didyma::storage::TensorFile;
use didyma::tasks::Task;
use didyma::{Error, Points, Posterior, Rows, SampleStreams};
use serde_json::{Value, json};

fn streams() -> SampleStreams {
    SampleStreams::new(Streams::new(7), Purpose::Posterior, 1)
}

/// So many observations around the origin.
fn observations(rows: usize) -> Vec<f64> {
    (0..2 * rows).map(|i| 0.3 * (1.7 * i as f64).sin()).collect()
}

fn rows(x: &[f64]) -> Rows<'_> {
    Rows::new("x", x, 2).unwrap()
}

fn score() -> Posterior {
    let config = small(Config::new(Profile::Default, Algorithm::Snse));
    run(&Task::named("two-moons").unwrap(), &config).posterior.unwrap()
}

/// Blocks that are whole or not, more observations than a tile has contexts, and one of more draws than a piece has.
#[test]
fn each_observation_has_the_draws_that_it_has_alone() {
    let mixed = mixture(Profile::Default, 3);
    let laws = [
        (&mixed, Points::Random, &[(1, 700), (90, 1), (70, 130), (3, 5000)][..]),
        (&mixed, Points::Sobol, &[(5, 600)]),
        (&trained(Profile::Paper), Points::Random, &[(6, 300), (2, 4500)]),
        (&score(), Points::Random, &[(3, 40)]),
    ];
    for (posterior, points, shapes) in laws {
        for &(count_x, count) in shapes {
            let (x, from) = (observations(count_x), streams().by(points));
            let found = posterior.sample_many(rows(&x), count, from, 2).unwrap();
            assert_eq!(found.len(), count_x * count * 2);
            for (row, found) in found.chunks_exact(2 * count).enumerate() {
                let x = rows(&x).row(row);
                let alone = posterior.sample_at(x, count, from.of_row(row), 1).unwrap();
                assert!(alone.theta == found, "row {row} of {count_x}, {count} draws, {points:?}");
            }
            for threads in [1, 5] {
                let again = posterior.sample_many(rows(&x), count, from, threads).unwrap();
                assert!(again == found, "{threads} threads");
            }
        }
    }
    let x = [0.1, 0.2];
    let first = mixed.sample_at(&x, 50, streams(), 1).unwrap().theta;
    assert_eq!(mixed.sample_many(rows(&x), 50, streams(), 1).unwrap(), first);
    // Of two equal observations the second has others.
    let twice = mixed.sample_many(rows(&[x, x].concat()), 50, streams(), 1).unwrap();
    assert!(twice[..100] == first && twice[100..] != first);
}

#[test]
fn each_pair_has_the_density_that_it_has_alone() {
    let mixed = mixture(Profile::Default, 3);
    for posterior in [&mixed, &trained(Profile::Paper), &score()] {
        for (count_x, each) in [(300, 1), (3, 70), (2, 2500)] {
            let x = observations(count_x);
            // Every tenth is outside of the prior or on its bound.
            let theta = |i: usize| if i % 10 == 3 { 1.0 } else { 0.9 * (2.3 * i as f64).sin() };
            let theta: Vec<f64> = (0..2 * count_x * each).map(theta).collect();
            let many = |threads| posterior.log_density_many(rows(&theta), rows(&x), threads);
            let found = many(2).unwrap();
            assert_eq!(found.len(), count_x * each);
            let bits = |found: &[f64]| found.iter().map(|l| l.to_bits()).collect::<Vec<_>>();
            for (row, found) in found.chunks_exact(each).enumerate() {
                let own = rows(&theta[2 * each * row..2 * each * (row + 1)]);
                let alone = posterior.log_density_at(rows(&x).row(row), own, 1).unwrap();
                assert_eq!(bits(found), bits(&alone), "row {row}");
            }
            for threads in [1, 5] {
                assert_eq!(bits(&many(threads).unwrap()), bits(&found), "{threads} threads");
            }
        }
    }
}

/// By quadrature on grids of two steps, as of a single observation: masses of regions are the shares of draws there.
#[test]
fn draws_follow_the_density_at_each_observation() {
    let (posterior, n) = (mixture(Profile::Default, 3), 10_000);
    let x = [0.25, -0.1, -0.3, 0.2, 0.0, 0.4];
    let drawn = posterior.sample_many(rows(&x), n, streams(), 2).unwrap();
    for (x, drawn) in x.chunks_exact(2).zip(drawn.chunks_exact(2 * n)) {
        let masses = |cells| {
            masses_by(true, cells, |theta| posterior.log_density_many(theta, rows(x), 2).unwrap())
        };
        let (coarse, fine) = (masses(280), masses(560));
        let quadrature = coarse.iter().zip(fine).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(quadrature < 0.005 && (fine[0] - 1.0).abs() < 0.005, "{coarse:?} {fine:?}");
        let middle = 2.0 / (1.0 + (-1f64).exp()) - 1.0;
        for (region, mass) in fine.into_iter().enumerate() {
            let inside = |row: &&[f64]| regions(row[0], row[1], middle)[region];
            let share = drawn.chunks_exact(2).filter(inside).count() as f64 / n as f64;
            // Binomial: 4.5 standard errors, and the error of the integrals.
            let error = 4.5 * (share * (1.0 - share) / n as f64).sqrt() + quadrature + 1e-4;
            assert!((share - mass).abs() < error, "{x:?}, region {region}: {share}, mass {mass}");
        }
    }
}

#[test]
fn observations_that_cannot_be_used_are_named() {
    let posterior = trained(Profile::Default);
    let of = |x: &[f64], columns| {
        let x = Rows::new("x", x, columns).unwrap();
        let drawn = posterior.sample_many(x, 5, streams(), 1).unwrap_err().to_string();
        let theta = Rows::new("theta", &[0.1, 0.2], 2).unwrap();
        assert_eq!(posterior.log_density_many(theta, x, 1).unwrap_err().to_string(), drawn);
        drawn
    };
    for (told, part) in [
        (of(&[0.1, 0.2, 0.3], 3), "x has 3 columns, but 2 are needed (one for each summary"),
        (of(&[], 2), "x has 0 rows, but 1 are needed"),
        (of(&[0.1, 0.2, 0.3, f64::NAN], 2), "x holds NaN in row 1, column 1"),
        (of(&[0.1, 0.2, 1e200, 0.0], 2), "row 1 of x: number 1 of the observation is 1e200"),
    ] {
        assert!(told.contains(part), "{told}");
    }
    let (theta, x) = (observations(5), observations(3));
    let theta = Rows::new("theta", &theta, 2).unwrap();
    let told = posterior.log_density_many(theta, rows(&x), 1).unwrap_err().to_string();
    assert!(told.contains("theta has 5 rows, but 3 are needed (one for each row of x"), "{told}");
    let told = posterior.sample_many(rows(&x), usize::MAX, streams(), 1).unwrap_err().to_string();
    assert!(told.contains("few enough for the memory"), "{told}");
    assert!(posterior.sample_many(rows(&x), 0, streams(), 1).unwrap().is_empty());
    assert!(posterior.log_density_many(rows(&[]), rows(&x), 1).unwrap().is_empty());
}

/// The file of a posterior with another description.
fn described(posterior: &Posterior, change: impl FnOnce(&mut Value)) -> Posterior {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("posterior.safetensors");
    posterior.save(&path, &Value::Null).unwrap();
    let mut file = TensorFile::load(&path, "posterior", &["params"]).unwrap();
    let mut described: Value = serde_json::from_str(&file.json).unwrap();
    change(&mut described);
    file.json = described.to_string();
    file.save(&path).unwrap();
    Posterior::load(&path).unwrap()
}

/// The flow's centre is moved a hundred prior widths away.
#[test]
fn an_observation_whose_posterior_leaks_is_named() {
    let far = described(&trained(Profile::Paper), |described| {
        described["coordinates"]["theta"]["mean"] = json!([200.0, 0.0]);
    });
    let x = observations(2);
    let told = far.sample_many(rows(&x), 5, streams(), 2).unwrap_err();
    assert!(
        matches!(&told, Error::AtRow { row: 0, error, .. } if matches!(**error, Error::Leakage { .. }))
    );
    assert!(told.to_string().starts_with("row 0 of x: only 0 of"), "{told}");
}

#[test]
fn a_posterior_knows_where_its_simulations_fell() {
    let task = Task::named("two-moons").unwrap();
    let posterior = run(&task, &tiny(Profile::Default)).posterior.unwrap();
    let untrained = |posterior: &Posterior, x: &[f64]| posterior.untrained(rows(x), &[]);
    assert_eq!(untrained(&posterior, posterior.observation()), None);
    let x = [0.0, 0.1, 50.0, 0.0];
    let found = untrained(&posterior, &x).unwrap();
    assert_eq!((found.rows, found.of, found.first), (1, 2, 1));
    let kept = described(&posterior, |_| ());
    assert_eq!(untrained(&kept, &x), Some(found));
    // A model of an earlier version does not say.
    let old = described(&posterior, |described| {
        assert!(described.as_object_mut().unwrap().remove("ranges").is_some());
    });
    assert_eq!(untrained(&old, &x), None);
    assert!(old.is_same(&posterior));
}

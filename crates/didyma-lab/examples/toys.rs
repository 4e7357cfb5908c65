//! Every estimator on the four exact toys: variance × cost, bias and rates, as the Markdown tables of
//! `docs/estimators.md`.
//!
//! ```console
//! $ cargo run --release -p didyma-lab --example toys
//! ```
//!
//! Figures in brackets are those of the specification, where it has one; it measured them with other
//! seeds, and reads those of the sharp and the four-dimensional toy to a factor of 2.

use didyma::Named;
use didyma::estimator::{Alpha, Blocks, Coupling, Estimator, Levels, Method, Settings, Tails};
use didyma::levels::{BatchMoments, LevelStudy, Objective, measure_batches};
use didyma::parallel;
use didyma::rng::{Purpose, Streams};
use didyma_lab::{TOYS, Toy, ToyQueries};

const BATCH: usize = 100;
const BATCHES: usize = 2000;
const STREAMS: Streams = Streams::new(1);

/// The law of inner samples: p̃, the mixture, and either by nets of Sobol's sequence.
#[derive(Clone, Copy)]
enum Inner {
    Proposal,
    Mixture,
    ProposalNets,
    MixtureNets,
}

impl Inner {
    fn queries(self, toy: &Toy) -> ToyQueries {
        match self {
            Self::Proposal => toy.queries(),
            Self::Mixture => toy.queries().of_mixture(),
            Self::ProposalNets => toy.queries().by_nets(),
            Self::MixtureNets => toy.queries().of_mixture().by_nets(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Proposal => "",
            Self::Mixture => ", mixture",
            Self::ProposalNets => ", nets",
            Self::MixtureNets => ", nets of the mixture",
        }
    }
}

/// An estimator, and what the specification measured on the mild, sharp and four-d toys: variance ×
/// cost in the first two tables, bias of the loss in the third.
struct Row {
    name: &'static str,
    settings: Settings,
    inner: Inner,
    specified: Option<[f64; 3]>,
}

fn row(name: &'static str, settings: Settings, specified: impl Into<Option<[f64; 3]>>) -> Row {
    Row { name, settings, inner: Inner::Proposal, specified: specified.into() }
}

fn main() -> didyma::Result<()> {
    println!("### Methods at the paper's settings\n");
    variance_table(&methods())?;
    println!("\n### Options\n");
    variance_table(&options()?)?;
    println!("\n### Planted coupling: bias of the loss\n");
    bias_table(&planted())?;
    println!("\n### Mixture: bias of loss and gradient\n");
    let untruncated = [Method::Ru, Method::Rr, Method::Grr];
    let mixed = untruncated.map(|method| mixture(method.name(), method));
    let by_nets = [
        nets("ru, nets", paper(Method::Ru), None),
        nets("rr, nets", paper(Method::Rr), None),
        nets("grr, nets", paper(Method::Grr), None),
    ];
    let rows: Vec<Row> = mixed.into_iter().chain(by_nets).collect();
    bias_table(&rows)?;
    gradient_table(&rows)?;
    println!("\n### Rates\n");
    rate_table()
}

fn paper(method: Method) -> Settings {
    let cap = if method == Method::Grr { 11 } else { 12 };
    let settings = Settings::paper(method);
    let top = settings.top.or(method.is_multilevel().then_some(cap));
    Settings { top, ..settings }
}

fn nested(atoms: usize) -> Settings {
    Settings { atoms, ..paper(Method::Nested) }
}

/// A method at the paper's settings with inner samples of the mixture.
fn mixture(name: &'static str, method: Method) -> Row {
    Row { inner: Inner::Mixture, ..row(name, paper(method), None) }
}

/// An estimator whose blocks are nets of the mixture.
fn nets(name: &'static str, settings: Settings, specified: Option<[f64; 3]>) -> Row {
    Row { inner: Inner::MixtureNets, ..row(name, settings, specified) }
}

fn atomic(atoms: usize) -> Settings {
    Settings { atoms, ..paper(Method::Atomic) }
}

fn methods() -> Vec<Row> {
    vec![
        row("nested 8", nested(8), [53.0, 367.0, 638.0]),
        row("nested 32", nested(32), [166.0, 688.0, 1389.0]),
        row("nested 128", nested(128), [606.0, 2112.0, 4045.0]),
        row("ru, α = 1.4", paper(Method::Ru), [250.0, 5227.0, 19189.0]),
        row("tru, top 4", paper(Method::Tru), [180.0, 2623.0, 6575.0]),
        row("rr, α = 1.4", paper(Method::Rr), [306.0, 3912.0, 33050.0]),
        row("grr, α = 1.209", paper(Method::Grr), [362.0, 4281.0, 28254.0]),
        row(
            "grr, α = 1.4",
            Settings { alpha: Alpha::Value(1.4), ..paper(Method::Grr) },
            [306.0, 3141.0, 28939.0],
        ),
        row("tgrr", paper(Method::Tgrr), [228.0, 3949.0, 16586.0]),
        row("atomic 33", atomic(33), [144.0, 443.0, 538.0]),
        row("atomic 129", atomic(129), [583.0, 1875.0, 2723.0]),
    ]
}

fn options() -> didyma::Result<Vec<Row>> {
    let tgrr = || paper(Method::Tgrr);
    let systematic = |settings| Settings { levels: Levels::Systematic, ..settings };
    let reused = |settings| Settings { blocks: Blocks::Reused, ..settings };
    let inclusive = |settings| Settings { coupling: Coupling::Inclusive, ..settings };
    let mixed = |row: Row| Row { inner: Inner::Mixture, ..row };
    let shifted = |row: Row| Row { inner: Inner::ProposalNets, ..row };
    let scaled =
        |base| at_cost(reused(Settings { base, alpha: Alpha::Value(1.4), ..tgrr() }), 35.7);
    let grr = at_cost(
        reused(Settings { base: 1, alpha: Alpha::Value(1.25), ..paper(Method::Grr) }),
        61.0,
    )?;
    Ok(vec![
        row("tgrr", tgrr(), [231.0, 3886.0, 10038.0]),
        row("… systematic levels", systematic(tgrr()), [215.0, 4540.0, 9972.0]),
        row("… reused block", reused(tgrr()), [212.0, 5680.0, 10218.0]),
        row("… reused, scaled α = 1.4, base 1", scaled(1)?, [190.0, 1204.0, 2886.0]),
        row("… the same, base 0", scaled(0)?, [192.0, 1191.0, 2898.0]),
        row("… base 1, systematic", systematic(scaled(1)?), [180.0, 1175.0, 2715.0]),
        row("… base 1, inclusive", inclusive(scaled(1)?), [183.0, 697.0, 1455.0]),
        row("… both", systematic(inclusive(scaled(1)?)), [179.0, 676.0, 1470.0]),
        row("tgrr, inclusive", inclusive(tgrr()), None),
        shifted(row("tgrr, nets", tgrr(), [202.0, 1276.0, 6424.0])),
        mixed(row("tgrr, mixture", tgrr(), [172.0, 575.0, 972.0])),
        nets("tgrr, nets of the mixture", tgrr(), None),
        mixed(row("nested 32, mixture", nested(32), [156.0, 516.0, 871.0])),
        mixed(row("nested 8, mixture", nested(8), [47.0, 159.0, 279.0])),
        nets("nested 8, nets of the mixture", nested(8), None),
        row("grr", paper(Method::Grr), [353.0, 4642.0, 58246.0]),
        shifted(row("grr, nets", paper(Method::Grr), [301.0, 2020.0, 11134.0])),
        row("grr, reused, scaled α = 1.25, base 1", grr, [339.0, 4527.0, 10619.0]),
        mixture("ru, mixture", Method::Ru),
        nets("ru, nets of the mixture", paper(Method::Ru), None),
        mixture("rr, mixture", Method::Rr),
        nets("rr, nets of the mixture", paper(Method::Rr), None),
        mixed(row("grr, mixture", paper(Method::Grr), [286.0, 937.0, 1613.0])),
        row("atomic 33", atomic(33), [143.0, 439.0, 535.0]),
    ])
}

fn planted() -> Vec<Row> {
    let planted = |method| Settings { coupling: Coupling::Planted, ..paper(method) };
    vec![
        row("nested 8", nested(8), [-0.022, -0.277, -0.840]),
        row("nested 32", nested(32), [-0.008, -0.065, -0.289]),
        row("ru, planted", planted(Method::Ru), [0.038, 0.269, 0.980]),
        row("rr, planted", planted(Method::Rr), [0.039, 0.261, 0.984]),
        row("grr, planted", planted(Method::Grr), [0.010, 0.081, 0.425]),
        row("tgrr, planted", planted(Method::Tgrr), [0.010, 0.073, 0.374]),
        row("tgrr", paper(Method::Tgrr), [-0.001, -0.013, -0.091]),
        row(
            "tgrr, inclusive",
            Settings { coupling: Coupling::Inclusive, ..paper(Method::Tgrr) },
            None,
        ),
    ]
}

/// Scaled geometric tails whose κ makes a query cost this many pairs.
fn at_cost(settings: Settings, pairs: f64) -> didyma::Result<Settings> {
    let with = |kappa| Settings { tails: Tails::Scaled { kappa }, ..settings.clone() };
    let (mut low, mut high) = (1e-6, 1e6);
    for _ in 0..100 {
        let middle = f64::sqrt(low * high);
        match Estimator::new(with(middle))?.expected_pairs() > pairs {
            true => high = middle,
            false => low = middle,
        }
    }
    Ok(with(low))
}

fn measure(row: &Row, toy: &Toy) -> didyma::Result<BatchMoments> {
    let mut estimator = Estimator::new(row.settings.clone())?;
    measure_batches(&mut row.inner.queries(toy), &mut estimator, BATCH, BATCHES, STREAMS)
}

/// Measures every row on every toy, on all cores.
fn measure_all(rows: &[Row]) -> didyma::Result<Vec<Vec<BatchMoments>>> {
    let jobs: Vec<_> = rows.iter().flat_map(|row| TOYS.iter().map(move |toy| (row, toy))).collect();
    let all = parallel::map(jobs.len(), parallel::cores(), |i| measure(jobs[i].0, jobs[i].1));
    let all = all.into_iter().collect::<didyma::Result<Vec<_>>>()?;
    Ok(all.chunks(TOYS.len()).map(<[_]>::to_vec).collect())
}

fn header(first: &str, more: &[&str]) {
    let names = TOYS.map(|toy| toy.name);
    let columns: Vec<&str> = [first].iter().chain(more).copied().chain(names).collect();
    println!("| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

/// Trace of the gradient's covariance × pairs, and the specification's figure.
fn variance_table(rows: &[Row]) -> didyma::Result<()> {
    header("variance (× cost)", &["pairs"]);
    let floor: Vec<String> = TOYS.iter().map(|toy| format!("{:.3}", exact_variance(toy))).collect();
    println!("| exact Z (floor) | – | {} |", floor.join(" | "));
    for (row, found) in rows.iter().zip(measure_all(rows)?) {
        let cell = |(i, m): (usize, &BatchMoments)| {
            let specified = row.specified.and_then(|s| Some(s[i.checked_sub(1)?]));
            let specified = specified.map_or(String::new(), |s| format!(" [{s}]"));
            format!("{} ({:.0}){specified}", three_digits(m.variance), m.variance * m.pairs.mean)
        };
        let cells: Vec<_> = found.iter().enumerate().map(cell).collect();
        println!("| {} | {:.1} | {} |", row.name, found[0].pairs.mean, cells.join(" | "));
    }
    Ok(())
}

fn three_digits(value: f64) -> String {
    let digits = 2 - value.abs().log10().floor() as i32;
    format!("{value:.*}", digits.max(0) as usize)
}

/// The variance of the gradient with the exact normalising constant: that of the outer samples alone.
fn exact_variance(toy: &Toy) -> f64 {
    let mut queries = toy.queries();
    let mut rng = STREAMS.stream(Purpose::Diagnostic, 1, 0);
    let n = BATCH * BATCHES;
    let mut rows = Vec::new();
    queries.outer(n, &mut rng, &mut rows);
    let gradients = rows.iter().map(|&row| toy.exact_query(queries.theta(row), queries.x(row)).1);
    let exact = toy.gradient();
    let square = |g: [f64; 3]| g.iter().zip(exact).map(|(g, e)| (g - e).powi(2)).sum::<f64>();
    gradients.map(square).sum::<f64>() / n as f64
}

/// Loss minus the exact loss, with its standard error.
fn bias_table(rows: &[Row]) -> didyma::Result<()> {
    header("bias ± s.e.", &[]);
    for (row, found) in rows.iter().zip(measure_all(rows)?) {
        let cell = |(i, (m, toy)): (usize, (&BatchMoments, &Toy))| {
            let specified = row.specified.and_then(|s| Some(s[i.checked_sub(1)?]));
            let specified = specified.map_or(String::new(), |s| format!(" [{s}]"));
            format!("{:+.4} ± {:.4}{specified}", m.loss.mean - toy.loss(), m.loss.error)
        };
        let cells: Vec<_> = found.iter().zip(&TOYS).enumerate().map(cell).collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
    Ok(())
}

/// Gradient minus the exact gradient: the component that is furthest off, in standard errors.
fn gradient_table(rows: &[Row]) -> didyma::Result<()> {
    println!();
    header("largest bias of the three components, in s.e.", &[]);
    for (row, found) in rows.iter().zip(measure_all(rows)?) {
        let cells = found.iter().zip(&TOYS).map(|(moments, toy)| {
            let each = moments.gradient.iter().zip(toy.gradient());
            let errors = each.map(|(found, exact)| (found.mean - exact).abs() / found.error);
            format!("{:.1}", errors.fold(0.0, f64::max))
        });
        let cells: Vec<_> = cells.collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
    Ok(())
}

/// r1 and r2 of the levels 1 to 6: excluded, inclusive, and excluded by the mixture and its nets.
fn rate_table() -> didyma::Result<()> {
    header("rate ± s.e.", &[]);
    let specified = [
        (Coupling::Excluded, Inner::Proposal, [1.77, 1.79, 1.27], [1.52, 1.38, 0.93]),
        (Coupling::Inclusive, Inner::Proposal, [f64::NAN; 3], [1.15, 0.89, 0.43]),
        (Coupling::Excluded, Inner::Mixture, [f64::NAN; 3], [f64::NAN; 3]),
        (Coupling::Excluded, Inner::MixtureNets, [f64::NAN; 3], [f64::NAN; 3]),
    ];
    for (coupling, inner, r1, r2) in specified {
        let study = LevelStudy::new(Settings { coupling, ..paper(Method::Rr) });
        let reports = TOYS.map(|toy| study.run(&mut inner.queries(&toy), STREAMS));
        let reports = reports.into_iter().collect::<didyma::Result<Vec<_>>>()?;
        for (name, specified, of) in [
            ("r1", r1, (|r| (r.r1, r.r1_se)) as fn(&didyma::levels::LevelReport) -> (f64, f64)),
            ("r2", r2, |r| (r.r2, r.r2_se)),
        ] {
            let cells = reports.iter().enumerate().map(|(i, report)| {
                let (value, error) = of(report);
                let known = i.checked_sub(1).map(|i| specified[i]).filter(|s| s.is_finite());
                let known = known.map_or(String::new(), |s| format!(" [{s}]"));
                format!("{value:.2} ± {error:.2}{known}")
            });
            let cells: Vec<_> = cells.collect();
            println!("| {name}, {}{} | {} |", coupling.name(), inner.name(), cells.join(" | "));
        }
    }
    Ok(())
}

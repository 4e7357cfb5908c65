//! Estimators in numbers of 50-digit arithmetic (`data/estimator_vectors.json`), as plans: for several tests.

use didyma::estimator::{
    Alpha, Blocks, Coupling, Draws, Estimator, Method, Plan, Settings, Source,
};
use didyma::rng::{Purpose, Stream, Streams};
use serde_json::Value;

/// Relative, down to a thousandth: smaller derivatives are differences of numbers near 1.
pub const TOLERANCE: f64 = 1e-12;

/// A plan whose row 0 is the outer sample and rows 1, 2, … the inner ones, with log g of them and what comes of it.
pub struct Case {
    pub name: String,
    pub plan: Plan,
    pub outer: f64,
    pub inner: Vec<f64>,
    pub loss: f64,
    /// Derivatives of the outer and the inner samples, where they are known.
    #[allow(dead_code, reason = "an engine does not tell them")]
    pub derivatives: Option<(f64, Vec<f64>)>,
}

impl Case {
    /// log g of a row.
    pub fn log_g(&self, row: u32) -> f64 {
        if row == 0 { self.outer } else { self.inner[row as usize - 1] }
    }
}

/// The whole file.
pub fn data() -> Value {
    serde_json::from_str(include_str!("../data/estimator_vectors.json")).unwrap()
}

pub fn vector(name: &str) -> Value {
    let all = data()["vectors"].as_array().unwrap().clone();
    all.into_iter().find(|v| v["name"] == name).unwrap_or_else(|| panic!("no vector {name}"))
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

/// Every vector's plans.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![nested(), atomic(), reused(), planted()];
    cases.extend(
        ["delta_block4", "delta_block8", "delta_block16"].into_iter().flat_map(differences),
    );
    cases.extend((0..3).flat_map(ru));
    cases.extend(ROULETTES.map(|(name, method)| roulette(name, method)));
    cases.extend(stability());
    cases
}

/// Hands out rows 1, 2, … in order.
struct InOrder(u32);

impl Source for InOrder {
    fn largest_block(&self) -> usize {
        usize::MAX
    }
    fn draw(&mut self, _: u32, count: usize, _: &mut Stream, draws: &mut Draws) {
        for _ in 0..count {
            self.0 += 1;
            draws.push(self.0);
        }
    }
}

fn plan(make: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::default();
    make(&mut plan);
    plan
}

/// The plan that an estimator makes for one query whose level comes out as `level`. It is the first of
/// the streams whose draw gives that level; blocks are filled from the highest level down.
fn plan_at(settings: Settings, level: u32) -> Plan {
    use rand::RngExt;
    let mut estimator = Estimator::new(settings).unwrap();
    let at = |i: &u64| Streams::new(1).stream(Purpose::Plan, 0, *i);
    let drawn = |i: &u64| estimator.law().level(at(i).random()) == level;
    let mut rng = at(&(0..100_000).find(drawn).unwrap());
    plan(|plan| estimator.plan(&[0], &mut InOrder(0), &mut rng, plan).unwrap())
}

/// A vector with the usual names: l0, inner, and their derivatives; `loss` is the name of its value.
fn case(v: &Value, plan: Plan, loss: &str) -> Case {
    Case {
        name: v["name"].as_str().unwrap().to_owned(),
        plan,
        outer: number(&v["l0"]),
        inner: v.get("inner").map(numbers).unwrap_or_default(),
        loss: number(&v[loss]),
        derivatives: v.get("d_l0").zip(v.get("d_inner")).map(|(o, i)| (number(o), numbers(i))),
    }
}

fn nested() -> Case {
    let settings = Settings { atoms: 8, ..Settings::paper(Method::Nested) };
    case(&vector("nested_M8"), plan_at(settings, 0), "psi")
}

fn atomic() -> Case {
    let v = vector("atomic_8atoms");
    let settings = Settings { atoms: 8, ..Settings::paper(Method::Atomic) };
    let derivatives = Some((number(&v["d_l0"]), numbers(&v["d_contrast"])));
    let inner = numbers(&v["contrast"]);
    Case { inner, derivatives, ..case(&v, plan_at(settings, 0), "psi_atomic") }
}

fn differences(name: &str) -> [Case; 3] {
    let v = vector(name);
    let rows = 1..=numbers(&v["inner"]).len() as u32;
    let anti = plan(|p| {
        p.group(0, rows.clone()).antithetic_difference(1.0);
    });
    let naive = plan(|p| {
        p.group(0, rows.clone()).naive_difference(1.0);
    });
    let inclusive = plan(|p| {
        p.group(0, std::iter::once(0).chain(rows)).share_first().antithetic_difference(1.0);
    });
    [("anti", anti), ("naive", naive), ("inclusive", inclusive)].map(|(kind, plan)| {
        let d_outer = v.get(format!("d_l0_{kind}")).map_or(0.0, number);
        let derivatives = Some((d_outer, numbers(&v[format!("d_inner_{kind}")])));
        Case { derivatives, ..case(&v, plan, &format!("delta_{kind}")) }
    })
}

/// Settings of the vector of RU at a level.
pub fn ru_settings(v: &Value) -> Settings {
    let alpha = Alpha::Value(number(&v["alpha"]));
    Settings { m0: 2, alpha, top: Some(12), ..Settings::paper(Method::Ru) }
}

/// The same, truncated.
pub fn tru_settings(v: &Value) -> Settings {
    Settings { method: Method::Tru, top: Some(4), ..ru_settings(v) }
}

fn ru(level: u32) -> [Case; 2] {
    let v = vector(&format!("RU_l{level}"));
    let whole = case(&v, plan_at(ru_settings(&v), level), "U");
    let truncated = case(&v, plan_at(tru_settings(&v), level), "U_trunc_mbar4");
    [whole, Case { derivatives: None, ..truncated }]
}

/// Roulettes, by the names of their vectors.
pub const ROULETTES: [(&str, Method); 6] = [
    ("RR_L2", Method::Rr),
    ("GRR_m1_L3", Method::Grr),
    ("GRR_m1_L1", Method::Grr),
    ("TGRR_m1_mbar3_L3", Method::Tgrr),
    ("TGRR_paper_M0_8_m2_mbar4_L4", Method::Tgrr),
    ("TGRR_paper_L2", Method::Tgrr),
];

pub fn roulette_settings(v: &Value, method: Method) -> Settings {
    Settings {
        m0: v["M0"].as_u64().unwrap() as usize,
        alpha: Alpha::Value(number(&v["alpha"])),
        base: v["m"].as_u64().unwrap() as u32,
        top: Some(v["mbar"].as_u64().unwrap_or(12) as u32),
        ..Settings::paper(method)
    }
}

fn roulette(name: &str, method: Method) -> Case {
    let v = vector(name);
    let plan = plan_at(roulette_settings(&v, method), v["L"].as_u64().unwrap() as u32);
    // The plan takes its blocks from the highest level down.
    let blocks: Vec<&Value> = v["blocks"].as_array().unwrap().iter().rev().collect();
    let inner = blocks.iter().flat_map(|b| numbers(&b["inner"])).collect();
    let d_inner = blocks.iter().flat_map(|b| numbers(&b["d_inner"])).collect();
    Case { inner, derivatives: Some((number(&v["d_l0"]), d_inner)), ..case(&v, plan, "U") }
}

pub fn reused_settings() -> Settings {
    let (base, top, blocks) = (1, Some(12), Blocks::Reused);
    Settings { m0: 2, alpha: Alpha::Paper, base, top, blocks, ..Settings::paper(Method::Grr) }
}

fn reused() -> Case {
    case(&vector("GRR_reuse_m1_L3"), plan_at(reused_settings(), 3), "U")
}

/// The authors' two copies, a planted difference of M₀ = 4 at level 1: the outer sample first and last of eight.
fn planted() -> Case {
    let v = vector("authors_delta_block8_two_copies");
    let (m0, top, coupling) = (4, Some(4), Coupling::Planted);
    let settings = Settings { m0, top, coupling, ..Settings::paper(Method::Ru) };
    let mut estimator = Estimator::new(settings).unwrap();
    let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
    let plan = plan(|plan| estimator.plan_level(0, 1, &mut InOrder(0), &mut rng, plan).unwrap());
    assert_eq!(plan.atoms(&plan.groups()[0]), [0, 1, 2, 3, 4, 5, 6, 0]);
    let (inner, d) = (numbers(&v["block"])[1..7].to_vec(), numbers(&v["d_block"])[1..7].to_vec());
    Case { inner, derivatives: Some((number(&v["d_l0"]), d)), ..case(&v, plan, "delta") }
}

/// log g over a wide range: a nested loss, whose outer sample is alone, and a difference without it.
pub fn stability() -> [Case; 2] {
    let v = vector("stability_large");
    let nested = plan(|p| {
        p.group(0, 1..=8).log_mean_exp(1.0);
        p.push_own(0, 1.0);
    });
    let difference = plan(|p| {
        p.group(0, 1..=8).antithetic_difference(1.0);
    });
    let with = |d_outer, d: &str| Some((d_outer, numbers(&v[d])));
    [
        Case { derivatives: with(-1.0, "d_inner"), ..case(&v, nested, "psi") },
        Case { derivatives: with(0.0, "d_inner_delta"), ..case(&v, difference, "delta_anti") },
    ]
}

//! Problem files: what they say, and what is said of bad ones.

#![allow(clippy::unwrap_used)]

use didyma::Source;
use didyma::config::{Algorithm, Layer, Profile};
use didyma::prior::Marginal;
use didyma::problem_file::{FIELDS, ProblemFile, schema};
use didyma::simulator::program::Call;
use proptest::prelude::*;
use std::path::Path;

/// Every field, each with a value that is not its default.
const FULL: &str = r#"
name = "queue"
about = "customers in a line"

[parameters]
service = { uniform = [0, 10], label = "θ₁", truth = 2 }
arrival = { normal = [1.5, 0.5], low = 0, high = 4, truth = 1 }
rate = { log_normal = [-1, 0.5], high = 3, truth = 0.5 }

[observation]
x = [0.5, 1e-3, -2]
names = ["shortest", "median", "longest"]

[simulator]
command = ["python3", "worker.py", "--fast"]
workers = 3
time_limit = 2.5
start_limit = 10
batch = 8
stream = true
launcher = ["srun", "-n1"]

[inference]
method = "tgrr"
profile = "paper"
rounds = 3
simulations = 500
seed = 9
train.batch = 50
estimator.tails = [0.5, 0.25]

[inference.flow]
layers = 4
"#;

fn parse(text: &str) -> didyma::Result<ProblemFile> {
    ProblemFile::parse(text, Path::new("here/problem.toml"))
}

#[test]
fn every_field_is_read() {
    let ProblemFile { problem, settings } = parse(FULL).unwrap();
    assert_eq!((problem.name.as_str(), problem.about.as_str()), ("queue", "customers in a line"));
    let names: Vec<&str> = problem.prior.names().collect();
    assert_eq!(names, ["service", "arrival", "rate"], "in the order of the file");
    let laws: Vec<Marginal> = problem.prior.parameters().iter().map(|p| p.marginal).collect();
    let truncated = |mean, sd, log, low, high| Marginal::Truncated { mean, sd, log, low, high };
    assert_eq!(
        laws,
        [
            Marginal::Uniform { low: 0.0, high: 10.0 },
            truncated(1.5, 0.5, false, Some(0.0), Some(4.0)),
            truncated(-1.0, 0.5, true, None, Some(3.0)),
        ]
    );
    assert_eq!(problem.labels, ["θ₁", "arrival", "rate"]);
    assert_eq!(problem.truth.as_deref(), Some(&[2.0, 1.0, 0.5][..]));
    assert_eq!(problem.observation, [0.5, 1e-3, -2.0]);
    assert_eq!(problem.summaries, ["shortest", "median", "longest"]);
    let Source::Program(program) = &problem.source else { panic!("it is a program") };
    let command = ["python3", "worker.py", "--fast"].map(str::to_owned).to_vec();
    assert_eq!(program.call, Call::Worker { command, batch: 8, stream: true });
    assert!(program.folder.is_absolute() && program.folder.ends_with("here"));
    assert_eq!((program.workers, program.time_limit, program.start_limit), (Some(3), 2.5, 10.0));
    assert_eq!(program.launcher, ["srun", "-n1"]);
    let config = settings.config(&Layer::default()).unwrap();
    assert_eq!((config.algorithm().name(), config.profile), ("tgrr", Profile::Paper));
    assert_eq!((config.rounds, config.simulations, config.seed), (3, 500, 9));
    assert_eq!((config.train.batch, config.flow.layers), (50, 4));
    let other = {
        let (method, profile) = (Some(Algorithm::Tsnpe), Some(Profile::Default));
        settings.config(&Layer { method, profile, ..Layer::default() }).unwrap()
    };
    assert_eq!((other.algorithm().name(), other.rounds), ("tsnpe", 3), "the command line wins");
    let text = serde_json::to_string(&problem).unwrap();
    assert_eq!(serde_json::from_str::<didyma::ProblemRecord>(&text).unwrap(), problem);
}

use didyma::Named;

/// The shortest file, and one for each kind of simulator.
#[test]
fn the_rest_has_defaults() {
    let file = parse("[parameters]\na = { uniform = [0, 1] }\n[observation]\nx = [1]\n[simulator]\ncommand = [\"./w\"]").unwrap();
    let Source::Program(program) = &file.problem.source else { panic!("it is a program") };
    assert_eq!((program.workers, program.time_limit, program.start_limit), (None, 600.0, 60.0));
    assert_eq!((file.problem.name.as_str(), &*file.problem.summaries[0]), ("here", "x1"));
    let task = parse("[simulator]\ntask = \"mg1\"").unwrap().problem.task().unwrap();
    assert_eq!((task.problem.prior().dim(), task.summaries.len()), (3, 5));
    assert!(task.scale.is_some(), "all is known of the built-in task itself");
    let changed = "[observation]\nx = [0, 1, 2, 3, 4]\n[simulator]\ntask = \"mg1\"";
    let task = parse(changed).unwrap().problem.task().unwrap();
    assert!(
        task.truth.is_some() && task.scale.is_none(),
        "nothing of another observation's posterior"
    );
    let bridge = "[parameters]\na = { uniform = [0, 1] }\n[observation]\nx = [1]\n[simulator]\numbridge = { url = \"http://localhost:4242/\", config = { level = 2, deep = { a = [1.5] } } }";
    let Source::Program(program) = parse(bridge).unwrap().problem.source else { panic!() };
    let Call::UmBridge { url, model, config, seed, retries } = program.call else { panic!() };
    assert_eq!((&*url, &*model, &*seed, retries), ("http://localhost:4242", "forward", "seed", 7));
    assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"deep":{"a":[1.5]},"level":2}"#);
}

#[test]
fn an_observation_comes_from_a_file_beside_the_problem() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), "b,a,c\n2,1,3\n").unwrap();
    std::fs::write(folder.path().join("odd.csv"), "a,@b\n2,1\n").unwrap();
    std::fs::write(folder.path().join("twice.csv"), "a,a\n2,1\n").unwrap();
    let read = |observation: &str| {
        let text = format!(
            "[parameters]\np = {{ uniform = [0, 1] }}\n[observation]\n{observation}\n[simulator]\ncommand = [\"w\"]\n"
        );
        let path = folder.path().join("problem.toml");
        std::fs::write(&path, text).unwrap();
        ProblemFile::read(&path).map(|file| (file.problem.observation, file.problem.summaries))
    };
    let (x, names) = read("csv = \"x.csv\"").unwrap();
    assert_eq!((x, names.join(" ")), (vec![2.0, 1.0, 3.0], "b a c".to_owned()));
    let (x, names) = read("csv = \"x.csv\"\nnames = [\"a\", \"b\"]").unwrap();
    assert_eq!((x, names.join(" ")), (vec![1.0, 2.0], "a b".to_owned()));
    for (observation, told) in [
        ("csv = \"none.csv\"", "could not read"),
        ("csv = \"x.csv\"\nnames = [\"d\"]", "lacks one of the columns d"),
        ("csv = \"x.csv\"\nx = [1]", "second observation"),
        ("csv = \"odd.csv\"", "has a column 2, whose name begins with"),
        ("csv = \"twice.csv\"", "has a twice: names must differ"),
    ] {
        let error = read(observation).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("line 4: observation.csv"), "{error}");
    }
    std::fs::write(folder.path().join("x.csv"), "1,2\n3,4\n").unwrap();
    assert!(read("csv = \"x.csv\"").unwrap_err().to_string().contains("has 2 rows"));
}

/// A change of the full file, and what is said of it: file, line, field, remedy.
#[test]
fn every_fault_is_told_with_its_line_its_field_and_a_remedy() {
    for (from, to, told) in [
        ("about", "abuot", "line 3: abuot is no field of a problem: did you mean about?"),
        ("name = \"queue\"", "name = 3", "line 2: name is a number: give a text in quotes"),
        ("name = \"queue\"", "name = \"a/b\"", "line 2: name names folders too"),
        ("name = \"queue\"", "name = \"\"", "line 2: name is empty"),
        ("name = \"queue\"", "name = queue", "line 2: this line is no TOML"),
        (
            "name = \"queue\"",
            "name = \"queue\"\nname = \"q\"",
            "line 3: this line is no TOML: duplicate key",
        ),
        (
            "uniform = [0, 10]",
            "uniform = [10, 0]",
            "line 6: parameters.service.uniform cannot be used",
        ),
        (
            "uniform = [0, 10]",
            "uniform = [1]",
            "line 6: parameters.service.uniform has 1 numbers: give two",
        ),
        (
            "uniform = [0, 10]",
            "uniform = \"0 to 10\"",
            "line 6: parameters.service.uniform is a text",
        ),
        ("uniform = [0, 10]", "uniform = [0, inf]", "line 6: parameters.service.uniform[2] is inf"),
        (
            "uniform = [0, 10]",
            "unifrom = [0, 10]",
            "line 6: parameters.service.unifrom is no field of a problem: did you mean uniform?",
        ),
        (
            "uniform = [0, 10]",
            "normal = [0, 1], uniform = [0, 10]",
            "line 6: parameters.service.normal is a second prior",
        ),
        (
            "uniform = [0, 10]",
            "uniform = [0, 10], low = 1",
            "line 6: parameters.service.low is of no use",
        ),
        (
            "uniform = [0, 10]",
            "integer = [0, 10]",
            "line 6: parameters.service.integer is a discrete law",
        ),
        ("uniform = [0, 10]", "poisson = 4", "round it in the simulator"),
        ("uniform = [0, 10], ", "", "line 6: parameters.service has no prior: give uniform"),
        (
            "{ uniform = [0, 10], label = \"θ₁\", truth = 2 }",
            "[0, 10]",
            "line 6: parameters.service is a list: give a table",
        ),
        ("truth = 2", "truth = 20", "line 6: parameters.service.truth is 20, outside of the prior"),
        ("truth = 2", "label = \"a\"", "duplicate key"),
        (", truth = 2", "", "parameters have a truth for some only: give all or none"),
        ("label = \"θ₁\"", "label = 1", "line 6: parameters.service.label is a number"),
        (
            "service =",
            "\"ser{vice\" =",
            "line 6: parameters.ser{vice is in braces where a command has it",
        ),
        (
            "service =",
            "\"\\u001b[2J\" =",
            "line 6: parameters.\u{fffd}[2J has a control character or an invisible one: leave it out",
        ),
        (
            "service =",
            "\" a\" =",
            "line 6: parameters. a begins or ends with a blank: leave it out",
        ),
        (
            "service =",
            "\"=1+1\" =",
            "parameters.=1+1 begins with =, +, - or @, a formula to spreadsheets",
        ),
        ("service =", "\"\" =", "line 6: parameters. is empty"),
        ("label = \"θ₁\"", "label = \"\\u0000\"", "line 6: parameters.service.label has a control"),
        ("name = \"queue\"", "name = \"a\\nb\"", "line 2: name has a control character"),
        ("name = \"queue\"", "name = \"..\"", "line 2: name names folders too"),
        ("\"shortest\"", "\"a\\u202eb\"", "line 12: observation.names[1] has a control character"),
        ("\"median\"", "\"-x\"", "line 12: observation.names[2] begins with =, +, - or @"),
        (
            "x = [0.5, 1e-3, -2]",
            "x = [0.5, 1e308, -2]",
            "line 11: observation.x cannot be used: number 2 of the observation is 1e308, but it must be between",
        ),
        (
            "normal = [1.5, 0.5]",
            "normal = [1.5, -1]",
            "line 7: parameters.arrival.normal cannot be used",
        ),
        ("low = 0", "low = \"0\"", "line 7: parameters.arrival.low is a text: give a number"),
        (
            "high = 4",
            "high = -1",
            "line 7: parameters.arrival.high is -1, but low is 0: give a low below high",
        ),
        (
            "log_normal = [-1, 0.5]",
            "log_normal = [-1, 100]",
            "line 8: parameters.rate.log_normal cannot be used",
        ),
        ("x = [0.5, 1e-3, -2]", "x = []", "line 11: observation.x is empty"),
        (
            "x = [0.5, 1e-3, -2]",
            "x = [0.5, nan, -2]",
            "line 11: observation.x[2] is NaN: give a finite number",
        ),
        (
            "x = [0.5, 1e-3, -2]",
            "x = [0.5, 1, true]",
            "line 11: observation.x[3] is true or false: give a number",
        ),
        (
            "x = [0.5, 1e-3, -2]",
            "x = [0.5]",
            "line 12: observation.names has 3 names for 1 numbers",
        ),
        ("x = [0.5, 1e-3, -2]\n", "", "observation is empty: give x"),
        ("\"shortest\"", "\"median\"", "line 12: observation.names has median twice"),
        ("\"shortest\"", "1", "line 12: observation.names[1] is a number: give a text in quotes"),
        (
            "[observation]",
            "[observations]",
            "observations is no field of a problem: did you mean observation?",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]",
            "command = \"python3\"",
            "line 15: simulator.command is a text: give texts in quotes in brackets",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]",
            "command = []",
            "line 15: simulator.command is empty",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]",
            "command = [1]",
            "line 15: simulator.command[1] is a number",
        ),
        (
            "command =",
            "comand =",
            "simulator.comand is no field of a problem: did you mean command?",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]\n",
            "",
            "simulator says not how to simulate",
        ),
        (
            "workers = 3",
            "workers = 0",
            "line 16: simulator.workers is 0: give a whole number between 1 and 1024",
        ),
        (
            "workers = 3",
            "workers = -2",
            "line 16: simulator.workers is -2: give a whole number between 1 and 1024",
        ),
        (
            "workers = 3",
            "workers = 1.5",
            "line 16: simulator.workers is a number: give a whole number",
        ),
        (
            "workers = 3",
            "run = [\"./a\"]",
            "line 16: simulator.run is a second simulator beside command",
        ),
        ("time_limit = 2.5", "time_limit = 0", "line 17: simulator.time_limit is 0: give seconds"),
        ("time_limit = 2.5", "time_limit = \"1 h\"", "line 17: simulator.time_limit is a text"),
        ("start_limit = 10", "start_limit = -1", "line 18: simulator.start_limit is -1"),
        ("batch = 8", "batch = 0", "line 19: simulator.batch is 0"),
        (
            "stream = true",
            "stream = 1",
            "line 20: simulator.stream is a number: give true or false",
        ),
        (
            "launcher = [\"srun\", \"-n1\"]",
            "launcher = \"srun\"",
            "line 21: simulator.launcher is a text",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]",
            "task = \"mg2\"",
            "simulator.batch is of no use beside task",
        ),
        (
            "command = [\"python3\", \"worker.py\", \"--fast\"]",
            "run = [\"./a\"]",
            "simulator.batch is of no use beside run",
        ),
        (
            "method = \"tgrr\"",
            "method = \"tgr\"",
            "line 24: inference.method is tgr: give one of tgrr",
        ),
        (
            "profile = \"paper\"",
            "profile = \"best\"",
            "line 25: inference.profile is best: give one of default, paper",
        ),
        ("rounds = 3", "rounds = \"three\"", "line 26: inference.rounds cannot be used"),
        (
            "train.batch = 50",
            "train.bacth = 50",
            "line 29: inference.train.bacth cannot be used: there is no setting train.bacth (did you mean train.batch?)",
        ),
        (
            "train.batch = 50",
            "train.batch = 1.5",
            "line 29: inference.train.batch cannot be used: train.batch cannot be 1.5",
        ),
        ("layers = 4", "layers = \"four\"", "line 33: inference.flow.layers cannot be used"),
    ] {
        assert!(FULL.contains(from), "{from} is not in the file");
        let error = parse(&FULL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with("here/problem.toml, line "), "{error}");
        assert!(error.contains(told), "{from} -> {to}\n{error}\n  instead of\n{told}");
    }
}

#[test]
fn faults_of_other_simulators_are_told() {
    let with = |simulator: &str| {
        let head = "[parameters]\na = { uniform = [0, 1] }\n[observation]\nx = [1]\n[simulator]\n";
        parse(&format!("{head}{simulator}")).unwrap_err().to_string()
    };
    for (simulator, told) in [
        ("task = \"mg2\"", "line 6: simulator.task is mg2, no task: there are two-moons"),
        ("task = \"mg1\"", "line 1: parameters has 1 numbers, but mg1 has 3"),
        ("task = \"mg1\"\nworkers = 2", "line 7: simulator.workers is of no use beside task"),
        ("umbridge = \"http://a\"", "line 6: simulator.umbridge is a text: give a table"),
        ("umbridge = {}", "line 6: simulator.umbridge.url is missing"),
        (
            "umbridge = { url = \"localhost\" }",
            "line 6: simulator.umbridge.url is localhost: give an address",
        ),
        ("umbridge = { url = \"http://a\", modle = \"b\" }", "did you mean model?"),
        ("umbridge = { url = \"http://a\", config = 1 }", "simulator.umbridge.config is a number"),
        (
            "umbridge = { url = \"http://a\", config = { seed = 1 } }",
            "which is where the seed goes",
        ),
        ("umbridge = { url = \"http://a\", retries = -1 }", "simulator.umbridge.retries is -1"),
        (
            "umbridge = { url = \"http://a\" }\nlauncher = [\"srun\"]",
            "simulator.launcher is of no use beside umbridge",
        ),
    ] {
        let error = with(simulator);
        assert!(error.contains(told), "{simulator}\n{error}\n  instead of\n{told}");
    }
    let whole = |text: &str| parse(text).unwrap_err().to_string();
    assert!(whole("").contains("line 1: simulator is missing"));
    let worker = "[simulator]\ncommand = [\"w\"]\n";
    assert!(whole(worker).contains("parameters is missing: name the parameters"));
    let parameters = "[parameters]\na = { uniform = [0, 1] }\n";
    assert!(whole(&format!("{worker}{parameters}")).contains("observation is missing"));
    assert!(
        whole(&format!("{worker}[parameters]\n[observation]\nx = [1]"))
            .contains("parameters is empty: name at least one")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, b"name = \"a\"\nabout = \"\xff\"").unwrap();
    let error = ProblemFile::read(&path).unwrap_err().to_string();
    assert!(error.contains("line 2: the text is not UTF-8"), "{error}");
}

/// Settings that do not go together are found with their line too.
#[test]
fn settings_out_of_range_are_told_with_their_line() {
    let file = parse(&FULL.replace("layers = 4", "layers = 0")).unwrap();
    let error = file.settings.config(&Layer::default()).unwrap_err().to_string();
    assert!(
        error.contains("problem.toml, line 33: inference.flow.layers cannot be used"),
        "{error}"
    );
}

#[test]
fn the_schema_has_every_field() {
    let schema = schema();
    for field in FIELDS {
        let mut at = &schema;
        for name in field.path.split('.') {
            at = if name == "NAME" { &at["additionalProperties"] } else { &at["properties"][name] };
        }
        assert!(at["description"].is_string() || at["enum"].is_array(), "{}: {at}", field.path);
    }
    assert!(
        schema["properties"]["inference"]["properties"]["train"]["properties"]["batch"].is_object()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the text is, it is read or refused.
    #[test]
    fn no_text_is_too_bad(text in ".{0,200}") {
        let _ = parse(&text);
    }

    /// The full file with a piece replaced by rubbish, or by a piece of itself.
    #[test]
    fn no_change_is_too_bad(at in 0..FULL.len(), length in 0..60usize, from in 0..FULL.len(), new in "[-a-z0-9.=\\[\\]{}\",' \n]{0,12}") {
        let boundary = |at: usize| (at..=FULL.len()).find(|i| FULL.is_char_boundary(*i)).unwrap();
        let (start, end) = (boundary(at), boundary((at + length).min(FULL.len())));
        let piece = &FULL[boundary(from)..boundary((from + length).min(FULL.len()))];
        for new in [&*new, piece] {
            let text = format!("{}{new}{}", &FULL[..start], &FULL[end..]);
            if let Err(error) = parse(&text) {
                let told = error.to_string();
                prop_assert!(told.starts_with("here/problem.toml, line "), "{}", told);
            }
        }
    }
}

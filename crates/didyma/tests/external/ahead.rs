//! Workers that answer before they are asked: no row may have what was not meant for it.

use super::{Bench, expect};

/// What is answered before it is asked waits in the pipe, and is no answer to what comes next.
#[test]
fn answers_before_it_is_asked() {
    let script = r#"
def ahead(request, by):
    return json.dumps({"id": request["id"] + by, "x": [-1, -1]})

rest = None
for r in requests():
    if rest:
        print(rest)
        rest = None
    answer(r)
    if row(r) % 4 == 0:
        # At once, and some time later: the next request may be on its way.
        print(ahead(r, 1), flush=True)
    elif row(r) % 4 == 1:
        time.sleep(0.02)
        print(ahead(r, 1), ahead(r, 2), sep="\n", flush=True)
    elif row(r) % 4 == 2:
        # Half of it, the rest after the next request.
        sys.stdout.write(ahead(r, 1)[:12])
        sys.stdout.flush()
        rest = ahead(r, 1)[12:]
"#;
    expect(&Bench::worker(script).run_all(12), &[]);
    // All that could be the next one.
    let script = r#"
for r in requests():
    answer(r)
    for by in range(1, 40):
        print(json.dumps({"id": r["id"] + by, "x": [-1, -1]}))
    for count in range(1, 40):
        print(json.dumps({"id": count, "x": [-1, -1]}), flush=True)
"#;
    expect(&Bench::worker(script).run(12), &[]);
}

/// One that greets with an answer is of no use, and that is told.
#[test]
fn answers_before_anything_is_asked() {
    let script = r#"
print('{"id": 1, "x": [-1, -1]}', flush=True)
for r in requests():
    answer(r)
"#;
    let parts: &[&str] = &["the worker answered 1, which was not asked"];
    expect(&Bench::worker(script).run_all(3), &[(0, parts), (1, parts), (2, parts)]);
}

//! Runs a Python file: `cargo run -p blockyard-python --example run FILE`.
fn main() {
    let file = std::env::args().nth(1).unwrap_or_default();
    let source = std::fs::read_to_string(&file).unwrap_or_default();
    let program = blockyard_python::Program { file, source, arguments: Vec::new() };
    let thread = std::thread::Builder::new().stack_size(512 << 20).spawn(move || {
        let done = blockyard_python::run(&program, Box::new(|text: &str| print!("{text}")));
        print!("{}", done.traceback.unwrap_or_default());
        for note in done.notes { println!("[line {}: {}]", note.line, note.text); }
        done.status
    });
    std::process::exit(thread.map_or(2, |thread| thread.join().unwrap_or(3)));
}

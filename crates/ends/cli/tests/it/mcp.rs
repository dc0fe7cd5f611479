//! `blockyard mcp`, as a client meets it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{command, json as parsed};

/// A client of the protocol, and the server that it started.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn new(folder: &Path) -> Self {
        let mut server = command();
        server.args(["mcp", "--folder"]).arg(folder);
        Self::of(&mut server)
    }

    fn of(server: &mut Command) -> Self {
        let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self { server, input, output, last: 0 };
        let client_info = json!({ "name": "test", "version": "1" });
        let asked = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
        let found = client.ask("initialize", &asked);
        assert_eq!(found["result"]["serverInfo"]["name"], "blockyard", "{found}");
        assert_eq!(found["result"]["protocolVersion"], "2025-06-18", "{found}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends a request; returns its number.
    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The next message of the server.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
        parsed(&line)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The result of a tool.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let found = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(found["error"].is_null(), "{found}");
        found["result"].clone()
    }

    /// The answer of a tool, which its text has too.
    fn answer(&mut self, tool: &str, arguments: &Value) -> Value {
        let found = self.call(tool, arguments);
        assert_eq!(found["isError"], false, "{found}");
        assert_eq!(parsed(found["content"][0]["text"].as_str().unwrap()), found["structuredContent"]);
        found["structuredContent"].clone()
    }

    /// The sentence with which a tool refuses its arguments.
    fn error(&mut self, tool: &str, arguments: &Value) -> String {
        let found = self.call(tool, arguments);
        assert_eq!(found["isError"], true, "{found}");
        found["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the server's input and waits for the end of the server.
    fn end(mut self) {
        self.input = None;
        assert!(self.server.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server has ended already, unless the test failed.
        let _ = self.server.kill();
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures")
}

/// The lines of JSON that the command prints in the folder of fixtures.
fn printed(arguments: &[&str]) -> Vec<Value> {
    let output = command().args(arguments).arg("--json").current_dir(fixtures()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(parsed).collect()
}

#[test]
fn the_tools_have_schemas_and_the_document_names_them() {
    let mut client = Client::new(&fixtures());
    let found = client.ask("tools/list", &json!({}));
    let tools = found["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "holders", "verdict", "what_if", "search", "fit"]);
    let document = include_str!("../../../../../docs/mcp.md");
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("no row about {name}"));
        for argument in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
            assert!(row.contains(&format!("`{argument}`")), "{name} takes {argument}: {row}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
        }
        assert_eq!(tool["annotations"]["readOnlyHint"], name != "fit");
    }
    // The schema of an answer is that of the documents.
    let documented = std::fs::read_to_string(fixtures().join("../../docs/schema/fit.json")).unwrap();
    assert_eq!(tools[5]["outputSchema"], parsed(&documented));
    client.end();
}

#[test]
fn the_tools_answer_as_the_command_does() {
    let mut client = Client::new(&fixtures());
    let leak = "oom/loss_history_100.pickle.gz";
    let found = client.answer("verdict", &json!({ "file": leak, "top": 1000 }));
    assert_eq!(found, json!({ "answers": printed(&["verdict", leak]), "left_out": 0 }));
    let short = client.answer("verdict", &json!({ "file": format!("./oom/../{leak}"), "top": 1 }));
    assert_eq!(short["answers"][0]["held"].as_array().unwrap().len(), 1);
    let all = found["answers"][0]["held"].as_array().unwrap().len();
    assert_eq!(short["left_out"], all - 1);

    let recording = "programs/gnn_random.jsonl.gz";
    let confs = ["expandable_segments:True", "max_split_size_mb:64", "no_such_setting:1"];
    let conditions = ["--limit", "1 GiB", "--total-memory", "4294967296", "--release", "2.15"];
    let mut arguments = vec!["what-if", recording];
    arguments.extend(confs.iter().flat_map(|conf| ["--conf", conf]));
    arguments.extend(conditions);
    let asked = json!({ "file": recording, "settings": confs, "limit": "1 GiB",
        "total_memory": 4_294_967_296_u64, "release": "2.15" });
    let found = client.answer("what_if", &asked);
    assert_eq!(found, json!({ "answers": printed(&arguments), "left_out": 0 }));

    let pieces = "snapshots/checkerboard_default_100.pickle.gz";
    let found = client.answer("search", &json!({ "file": pieces, "all": true }));
    assert_eq!(found, json!({ "answers": printed(&["search", pieces]), "left_out": 0 }));
    let short = client.answer("search", &json!({ "file": pieces }));
    let (all, best) = (&found["answers"][0], &short["answers"][0]);
    let rows = |answer: &Value| -> Vec<Value> {
        let front = answer["front"].as_array().unwrap().iter();
        front
            .map(|index| answer["settings"][usize::try_from(index.as_u64().unwrap()).unwrap()].clone())
            .collect()
    };
    assert_eq!(rows(best), rows(all));
    let count = |answer: &Value| answer["settings"].as_array().unwrap().len();
    assert_eq!(short["left_out"], count(all) - count(best));
    assert!(count(best) < 10 && count(all) > 50, "{} of {}", count(best), count(all));

    let opened = client.answer("open", &json!({ "file": leak, "certificate": true }));
    assert_eq!(opened, printed(&["snapshot", leak, "--top", "0"])[0]);
    let several = "snapshots/checkerboard.pickle.zst";
    let held = client.answer("holders", &json!({ "file": several, "top": 2, "at": "request:5" }));
    let options = ["snapshot", several, "--top", "2", "--at", "request:5", "--no-certificate"];
    assert_eq!(held, printed(&options)[0]);
    client.end();
}

#[test]
fn what_is_wrong_is_said_in_a_sentence_and_the_server_goes_on() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mcp-wrong");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("served")).unwrap();
    let file = fixtures().join("oom/one_too_large_100.pickle.gz");
    for name in ["secret.pickle", "served/run.pickle"] {
        std::fs::copy(&file, folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("served/words.txt"), "no run").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join("secret.pickle"), folder.join("served/link.pickle")).unwrap();
    let mut client = Client::new(&folder.join("served"));
    let mut outside = vec!["../secret.pickle".to_owned(), "../nothing".to_owned(), "/etc/passwd".to_owned()];
    if cfg!(unix) {
        outside.push("link.pickle".to_owned());
    }
    for name in outside {
        for tool in ["open", "holders", "verdict", "what_if", "search"] {
            let error = client.error(tool, &json!({ "file": name }));
            assert!(error.starts_with(&format!("`{name}` is not below ")), "{tool}: {error}");
        }
        let error = client.error("fit", &json!({ "file": name, "vary": ["n=1..2"] }));
        assert!(error.starts_with(&format!("`{name}` is not below ")), "{error}");
    }
    for (tool, arguments, words) in [
        ("open", json!({}), "missing field `file`"),
        ("open", json!({ "file": "nothing" }), "there is no such file below "),
        ("open", json!({ "file": "words.txt" }), "not a"),
        ("verdict", json!({ "file": "words.txt" }), "expected a statement"),
        ("verdict", json!({ "file": "run.pickle", "limits": 1 }), "the tool has no argument `limits`"),
        ("verdict", json!({ "file": "run.pickle", "limit": "much" }), "much"),
        ("verdict", json!({ "file": "run.pickle", "limit": -1 }), "a size is a number of bytes or a text"),
        ("what_if", json!({ "file": "run.pickle", "release": "1.0" }), "1.0"),
        ("holders", json!({ "file": "run.pickle", "at": "noon" }), "\"noon\" is not a moment"),
        ("holders", json!({ "file": "run.pickle", "device": "7" }), "has nothing about device 7"),
        ("fit", json!({ "file": "words.txt", "vary": ["n"] }), "n"),
        ("fit", json!({ "file": "words.txt", "vary": [] }), "`vary` names no option"),
    ] {
        let error = client.error(tool, &arguments);
        assert!(error.contains(words) && !error.contains('\n'), "{tool} {arguments}: {error}");
    }
    let unknown = client.ask("tools/call", &json!({ "name": "delete", "arguments": {} }));
    assert_eq!(unknown["error"]["message"], "there is no tool `delete`");
    assert_eq!(client.ask("no/method", &json!({}))["error"]["code"], -32601);
    client.send("no JSON");
    client.send("{\"jsonrpc\": \"2.0\", \"id\": [], \"method\": 3}");
    assert_eq!(client.receive()["error"]["code"], -32600);
    let found = client.answer("verdict", &json!({ "file": "run.pickle" }));
    assert_eq!(found["answers"][0]["kind"], "out_of_memory");
    client.end();
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn fit_tells_its_progress_and_can_be_cancelled() {
    let Some(folder) = super::fit::folder("mcp") else { return };
    let slow =
        "import os, time\nprint(os.getpid(), file=open('started', 'w'), flush=True)\ntime.sleep(600)\n";
    std::fs::write(folder.join("slow.py"), slow).unwrap();
    let mut server = command();
    server.args(["mcp", "--python", "python3", "--folder"]).arg(&folder);
    let mut client = Client::of(super::fit::over_packages(&mut server, &folder));
    let call = |file: &str| {
        json!({ "name": "fit", "_meta": { "progressToken": file }, "arguments": {
            "file": file, "vary": ["batch-size=1..512"], "gpu": ["h100"], "steps": 3,
            "arguments": ["--fails-at", "1000"] } })
    };
    let id = client.request("tools/call", &call("train.py"));
    let mut progress = 0;
    let found = loop {
        let message = client.receive();
        if message["id"] == id {
            break message;
        }
        progress += 1;
        assert_eq!(message["params"]["progressToken"], "train.py", "{message}");
        assert_eq!(message["params"]["progress"].as_f64(), Some(f64::from(progress)), "{message}");
        assert!(message["params"]["message"].as_str().unwrap().contains("batch-size"), "{message}");
    };
    assert!(progress > 3, "{progress}");
    assert_eq!(found["result"]["structuredContent"]["largest"], 47, "{found}");

    let id = client.request("tools/call", &call("slow.py"));
    assert_eq!(client.receive()["params"]["progressToken"], "slow.py");
    let process = started(&folder);
    let params = json!({ "requestId": id });
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
    );
    assert!(client.ask("ping", &json!({}))["result"].is_object());
    assert!(wait(|| !process.exists()), "a cancelled program runs on");
    // A program whose client goes ends too.
    client.request("tools/call", &call("slow.py"));
    let process = started(&folder);
    client.end();
    assert!(!process.exists(), "the program is left behind");
}

/// The process of the slow program, once it runs.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn started(folder: &Path) -> PathBuf {
    let mut written = String::new();
    assert!(wait(|| {
        written = std::fs::read_to_string(folder.join("started")).unwrap_or_default();
        written.ends_with('\n')
    }));
    std::fs::remove_file(folder.join("started")).unwrap();
    Path::new("/proc").join(written.trim())
}

/// Whether something happens within a minute.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn wait(mut has_happened: impl FnMut() -> bool) -> bool {
    let begin = std::time::Instant::now();
    while !has_happened() {
        if begin.elapsed().as_secs() > 60 {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    true
}

#[test]
fn a_client_of_another_make_reads_the_answers() {
    let Some(python) = std::env::var_os("MCP_PYTHON") else {
        eprintln!("skipped: MCP_PYTHON names no Python that has the package mcp");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_client.py");
    let mut client = Command::new(python);
    client.arg(script).arg(env!("CARGO_BIN_EXE_blockyard")).arg(fixtures());
    let output = client.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "open holders verdict what_if search fit\nout_of_memory\n"
    );
}

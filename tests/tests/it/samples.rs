//! The page's samples.

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_pytorch::snapshot;

/// The files of stacks that a sample may name beside its program and Python's own `<frozen runpy>`: packages,
/// from their folder on.
const PACKAGES: &str = "site-packages/";

#[test]
fn samples_are_small_and_name_their_own_files_without_a_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut count = 0;
    for file in std::fs::read_dir(root.join("web/samples")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let program = format!("{}.py", name.split('.').next().unwrap());
        let lines = std::fs::read_to_string(root.join("examples/samples").join(&program)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() < 60_000, "{name}");
        let found = snapshot::read(bytes.as_slice(), &mut |_| ControlFlow::Continue(())).unwrap();
        let stacks = &found.stacks;
        let blocks = found.devices.iter().flat_map(|device| &device.segments).flat_map(|held| &held.blocks);
        let frames = blocks.flat_map(|block| stacks.frames(block.stack)).map(|frame| stacks.frame(frame));
        let mut has_own = false;
        for frame in frames {
            let is_own = frame.filename == program && (frame.line as usize) <= lines.lines().count();
            assert!(
                is_own || frame.filename.starts_with('<') || frame.filename.starts_with(PACKAGES),
                "{name}: {frame:?}"
            );
            has_own |= is_own;
        }
        assert!(has_own, "{name} names no line of {program}");
        count += 1;
    }
    assert_eq!(count, 5);
}

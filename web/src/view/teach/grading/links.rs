//! The links to solutions in a file that a student handed in: alone, in a mail, or in a shortcut of a desktop.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use crate::link::Link;

/// A mail folds a link into lines; a longer one is no link that the page writes.
const MAX_LINES: usize = 400;

/// The links with lines of an exercise in the text, each once.
pub(super) fn solution_links(text: &str) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for form in forms(text) {
        for (at, _) in form.match_indices('#') {
            let link = form.get(at + 1..).and_then(link_at);
            let is_same =
                |link: &Link, other: &Link| link.solution == other.solution && link.target == other.target;
            found.extend(link.filter(|link| !found.iter().any(|other| is_same(link, other))));
        }
    }
    found
}

/// The text as it is, and as mails and their filters write it.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    let mut rest = text;
    while let Some(at) = rest.to_ascii_lowercase().find("transfer-encoding: base64") {
        rest = rest.get(at + 1..).unwrap_or_default();
        let lines = rest.lines().skip_while(|line| !line.trim().is_empty()).skip(1);
        let packed: String =
            lines.map(str::trim).take_while(|line| !line.is_empty() && !line.starts_with("--")).collect();
        forms.extend(STANDARD.decode(packed).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    }
    for form in forms.clone() {
        // Quoted-printable is percent encoding with another sign.
        let printable = form.contains("=3D").then(|| {
            let whole = form.replace("=\r\n", "").replace("=\n", "").replace('%', "%25").replace('=', "%");
            percent_decode_str(&whole).decode_utf8_lossy().into_owned()
        });
        // A filter of mails puts the address into its own.
        let inner = form.contains("%23").then(|| percent_decode_str(&form).decode_utf8_lossy().into_owned());
        forms.extend(printable.into_iter().chain(inner));
    }
    forms.iter().map(|form| form.replace("&amp;", "&")).collect()
}

/// The link at the beginning of a text, which may go on in the next lines.
fn link_at(text: &str) -> Option<Link> {
    let is_of_address = |letter: char| letter.is_ascii_alphanumeric() || "-_.:,/&=%+".contains(letter);
    let mut hash = String::new();
    for line in text.lines().take(MAX_LINES) {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
        let end = line.find(|letter: char| !is_of_address(letter)).unwrap_or(line.len());
        hash.push_str(line.get(..end)?);
        let read = Link::read(hash.trim_end_matches(['.', ',', ':'])).0;
        if read.solution.is_some() {
            return Some(read);
        }
        if end < line.len() || line.is_empty() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::link::LinkTarget;

    fn link(lines: &str) -> Link {
        let target = LinkTarget::Lesson { id: "tensor".to_owned(), card: 10 };
        Link { target, solution: Some(lines.to_owned()), step: Some(3), ..Link::default() }
    }

    #[test]
    fn a_link_is_found_where_people_put_it() {
        let lines = (0..40).map(|number| format!("x{number} = torch.empty({})", number * 37));
        let lines = lines.collect::<Vec<_>>().join("\n");
        let expected = link(&lines);
        let address = format!("https://a.example/page/#{}", expected.write());
        let folded: Vec<String> =
            address.as_bytes().chunks(70).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        let quoted = address.replace('=', "=3D");
        let quoted: Vec<&str> =
            quoted.as_bytes().chunks(70).filter_map(|line| str::from_utf8(line).ok()).collect();
        let safe = address.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
        let packed = STANDARD.encode(format!("Hello,\n{address}\nAnna"));
        for text in [
            address.clone(),
            format!("Dear teacher,\n\nmy solution: {address}.\n\nAnna #1"),
            format!("[InternetShortcut]\r\nURL={address}\r\n"),
            format!("<p><a href=\"{0}\">{0}</a></p>", address.replace('&', "&amp;")),
            format!("Hello,\n> {}\n> Anna", folded.join("\n> ")),
            format!("Content-Transfer-Encoding: quoted-printable\n\nHello,\n{}\n\nAnna", quoted.join("=\n")),
            format!("Content-Transfer-Encoding: base64\r\n\r\n{packed}\r\n--part\r\n"),
            format!("https://filter.example/?url={safe}&data=05"),
        ] {
            let found = solution_links(&text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(
                (&found[0].target, &found[0].solution),
                (&expected.target, &expected.solution),
                "{text}"
            );
        }
    }

    #[test]
    fn several_links_are_found_and_other_texts_have_none() {
        let (one, two) = (link("x = 1").write(), link("x = 2").write());
        assert_eq!(solution_links(&format!("https://a.example/#{one} and #{two}, #{one}")).len(), 2);
        let program = "# solution=1.abc\nx = 1  # lesson=tensor\n#\n";
        assert_eq!(solution_links(program), []);
        assert_eq!(solution_links("https://a.example/#lesson=tensor&card=2"), []);
    }
}

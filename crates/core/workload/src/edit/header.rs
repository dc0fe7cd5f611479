//! The lines of a text that name the device and the settings that the text is written for.

/// The text with the given values in its lines `capacity …` and `conf …`. A missing line is inserted at the
/// front of the text. An empty `conf` removes the line.
///
/// Comments and labels are not searched. A line with several statements keeps the other statements.
#[must_use]
pub fn with_header(text: &str, capacity: &str, conf: &str) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let mut wanted = [("capacity", Some(capacity.trim())), ("conf", Some(conf.trim()))];
    for (keyword, value) in &mut wanted {
        let place = lines.iter().position(|line| says(line, keyword));
        let Some(line) = place.and_then(|place| lines.get_mut(place)) else { continue };
        *line = replaced(line, keyword, value.take().unwrap_or_default());
    }
    let missing = wanted.into_iter().filter_map(|(keyword, value)| {
        value.filter(|value| !value.is_empty()).map(|value| format!("{keyword} {value}"))
    });
    let mut all: Vec<String> = missing.collect();
    if !all.is_empty() && lines.first().is_some_and(|line| !line.trim().is_empty()) {
        all.push(String::new());
    }
    all.extend(lines);
    all.join("\n")
}

/// Whether the line's statement begins with the keyword, and does not allocate a tensor of that name.
fn says(line: &str, keyword: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix(keyword) else { return false };
    rest.starts_with([' ', '\t']) && !rest.trim_start().starts_with(['=', '['])
}

fn replaced(line: &str, keyword: &str, value: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let after = line.find([';', '#']).map_or("", |at| line.get(at..).unwrap_or_default());
    let gap = if after.is_empty() { "" } else { " " };
    let indent = line.get(..indent).unwrap_or_default();
    if value.is_empty() {
        return format!("{indent}{}", after.trim_start_matches([';', ' ']));
    }
    format!("{indent}{keyword} {value}{gap}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    #[test]
    fn lines_are_put_in_front_and_replaced_where_they_stand() {
        let text = "# a lesson\na = alloc 3 MiB\n";
        let once = with_header(text, "64 MiB", "max_split_size_mb:64");
        assert_eq!(once, "capacity 64 MiB\nconf max_split_size_mb:64\n\n# a lesson\na = alloc 3 MiB\n");
        let twice = with_header(&once, "2 GiB", "");
        let workload = Workload::parse(&twice).unwrap();
        assert_eq!(workload.capacity(), Some(blockyard_record::Bytes::gib(2)));
        assert_eq!(workload.conf(), None);
        assert_eq!(with_header(&twice, "2 GiB", ""), twice);
        assert_eq!(
            with_header("capacity = alloc 1 KiB", "1 GiB", ""),
            "capacity 1 GiB\n\ncapacity = alloc 1 KiB"
        );
        assert_eq!(with_header("capacity 1 GiB # why", "2 GiB", ""), "capacity 2 GiB # why");
    }
}

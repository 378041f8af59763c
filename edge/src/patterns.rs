//! Finds what belongs to a method and a path among patterns such as `/v1/campaigns/{c}`. A part in braces stands for
//! any text but an empty one.

use std::{borrow::Cow, collections::HashMap};

/// A method, a pattern of paths, and what belongs to them.
#[derive(Debug)]
pub struct Row<T> {
    pub method: &'static str,
    pub pattern: Cow<'static, str>,
    pub value: T,
}

/// Rows, grouped by the number of parts of their patterns.
#[derive(Debug)]
pub struct Patterns<T>(HashMap<usize, Vec<Row<T>>>);

impl<T> Patterns<T> {
    pub fn new(rows: impl IntoIterator<Item = Row<T>>) -> Self {
        let mut by_length: HashMap<_, Vec<_>> = HashMap::new();
        for row in rows {
            by_length.entry(parts(&row.pattern).count()).or_default().push(row);
        }
        Self(by_length)
    }

    /// The first row that fits a method and a path as actix decodes it (`%2F` stays).
    #[must_use]
    pub fn find(&self, method: &str, path: &str) -> Option<&Row<T>> {
        let rows = self.0.get(&parts(path).count())?;
        rows.iter().find(|row| row.method == method && fits(&row.pattern, path))
    }

    /// The methods of a path, each once, in the order of their rows. None if no row fits.
    #[must_use]
    pub fn methods(&self, path: &str) -> Vec<&'static str> {
        let rows = self.0.get(&parts(path).count()).into_iter().flatten();
        let mut methods = Vec::new();
        for row in rows.filter(|row| fits(&row.pattern, path)) {
            if !methods.contains(&row.method) {
                methods.push(row.method);
            }
        }
        methods
    }
}

/// Whether a pattern fits a path as actix decodes it.
#[must_use]
pub fn fits(pattern: &str, path: &str) -> bool {
    let mut given = parts(path);
    let is_fit = |part: &str, given: &str| given == part || (name(part).is_some() && !given.is_empty());
    parts(pattern).all(|part| given.next().is_some_and(|given| is_fit(part, given))) && given.next().is_none()
}

/// The names in a pattern and what stands for them in a path that fits.
pub fn values<'a>(pattern: &'a str, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    parts(pattern).zip(parts(path)).filter_map(|(part, given)| Some((name(part)?, given)))
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
}

fn name(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

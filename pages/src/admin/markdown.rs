//! Renders Markdown for a page. The text is untrusted: HTML in it is shown as text, images are not loaded, and a
//! sanitizer cleans the result.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use ammonia::UrlRelative;
use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Parser, Tag, TagEnd, html};
use world::lore::MARKDOWN;

/// A text with deeper nesting is shown as plain text.
const LEVELS_MAX: usize = 60;

/// How a link is shown.
enum Shown {
    Link,
    /// Nothing has its name.
    Broken,
    /// As its words alone.
    Words,
}

/// The HTML of a Markdown text. `links` maps `[[names]]` to their addresses. A name without an address is shown as a broken link.
#[must_use]
pub fn render(text: &str, links: &HashMap<String, String>) -> String {
    let mut levels = 0;
    let mut open: Vec<Shown> = Vec::new();
    let mut events = Vec::new();
    for event in Parser::new_ext(text, MARKDOWN) {
        match &event {
            Event::Start(_) => levels += 1,
            Event::End(_) => levels -= 1,
            _ => {}
        }
        if levels > LEVELS_MAX {
            return as_text(text);
        }
        match event {
            Event::Html(html) | Event::InlineHtml(html) => events.push(Event::Text(html)),
            // The page's own headings are on higher levels.
            Event::Start(Tag::Heading { level, .. }) => events.push(Event::Start(Tag::Heading {
                level: lower(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            })),
            Event::End(TagEnd::Heading(level)) => events.push(Event::End(TagEnd::Heading(lower(level)))),
            Event::Start(Tag::Image { .. }) => events.push(Event::Text("[picture: ".into())),
            Event::End(TagEnd::Image) => events.push(Event::Text("]".into())),
            Event::Start(Tag::Link { link_type: LinkType::WikiLink { .. }, dest_url, title, id }) => {
                let there = links.get(dest_url.trim().trim_end_matches('\\'));
                match there {
                    Some(path) => {
                        open.push(Shown::Link);
                        events.push(Event::Start(Tag::Link {
                            link_type: LinkType::Inline,
                            dest_url: CowStr::from(path.clone()),
                            title,
                            id,
                        }));
                    }
                    // A part of the same page. Headings have no addresses here.
                    None if dest_url.trim_start().starts_with('#') => open.push(Shown::Words),
                    None => {
                        open.push(Shown::Broken);
                        events
                            .push(Event::InlineHtml(r#"<span class="broken" title="Nothing has this name.">"#.into()));
                        events.push(Event::Text("[[".into()));
                    }
                }
            }
            Event::Start(Tag::Link { .. }) => {
                open.push(Shown::Link);
                events.push(event);
            }
            Event::End(TagEnd::Link) => match open.pop() {
                Some(Shown::Broken) => {
                    events.extend([Event::Text("]]".into()), Event::InlineHtml("</span>".into())]);
                }
                Some(Shown::Words) => {}
                Some(Shown::Link) | None => events.push(event),
            },
            other => events.push(other),
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    clean(&out)
}

/// The heading level two levels lower.
fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

fn as_text(text: &str) -> String {
    let mut out = String::from("<pre>");
    out.push_str(&ammonia::clean_text(text));
    out.push_str("</pre>");
    out
}

/// A relative URL if it is on our own site. `//host`, and what browsers treat like it, is not.
fn ours(url: &str) -> Option<Cow<'_, str>> {
    let mut chars = url.chars();
    let is_ours = chars.next() == Some('/') && !matches!(chars.next(), Some('/' | '\\'));
    (is_ours && !url.contains(char::is_control)).then_some(Cow::Borrowed(url))
}

fn clean(html: &str) -> String {
    static CLEANER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
        let mut cleaner = ammonia::Builder::default();
        cleaner
            .tags(
                [
                    "a",
                    "p",
                    "br",
                    "em",
                    "strong",
                    "del",
                    "code",
                    "pre",
                    "blockquote",
                    "ul",
                    "ol",
                    "li",
                    "hr",
                    "h1",
                    "h2",
                    "h3",
                    "h4",
                    "h5",
                    "h6",
                    "table",
                    "thead",
                    "tbody",
                    "tr",
                    "th",
                    "td",
                    "span",
                ]
                .into(),
            )
            .generic_attributes([].into())
            .tag_attributes(
                [("a", ["href", "title"].into()), ("ol", ["start"].into()), ("span", ["title"].into())].into(),
            )
            .allowed_classes([("span", ["broken"].into())].into())
            .url_schemes(["http", "https", "mailto"].into())
            .url_relative(UrlRelative::Custom(Box::new(ours)))
            .link_rel(Some("noopener noreferrer nofollow"));
        cleaner
    });
    CLEANER.clean(html).to_string()
}

//! Pages that can be rendered as a whole or by block.

use askama::Template;

/// A page that can be rendered as a whole or by block. [`crate::render_blocks!`] implements it.
pub trait RenderBlocks: Template {
    /// The block with the id of htmx's target element; `main` for all other targets.
    ///
    /// # Errors
    /// Errors of the template.
    fn block(&self, target: &str) -> askama::Result<String>;
}

/// `render_blocks!(ThingsPage: as_main, "rows" => as_rows)`: the default block, and the blocks that htmx can ask for by id.
#[macro_export]
macro_rules! render_blocks {
    ($page:ident $(<$lifetime:lifetime>)?: $main:ident $(, $id:literal => $block:ident)*) => {
        impl $(<$lifetime>)? $crate::admin::RenderBlocks for $page $(<$lifetime>)? {
            fn block(&self, target: &str) -> askama::Result<String> {
                use askama::Template as _;
                match target {
                    $($id => self.$block().render(),)*
                    _ => self.$main().render(),
                }
            }
        }
    };
}

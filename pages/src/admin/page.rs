//! A page or a form's address, and who may open it.

use actix_web::{HttpMessage, HttpRequest, Route};

use super::submitted::Holds;
use edge::{caller::Scope, http::router::Pattern};

/// All pages. A request finds them in the data of its scope, so that the files of pages need not know the list.
pub(super) struct Pages(pub(super) &'static [Page]);

/// A page or a form's address.
pub struct Page {
    pub method: &'static str,
    /// The pattern of its path, below `/admin`.
    pub path: &'static str,
    /// None if anybody, or any user, may open the page; the handler's extractor decides which.
    pub scope: Option<Scope>,
    /// A second required scope, for a page that does two things at once.
    pub also: Option<Scope>,
    /// The largest form that the page accepts.
    pub holds: Holds,
    pub(super) route: fn() -> Route,
}

pub(super) const fn get(path: &'static str, scope: Scope, route: fn() -> Route) -> Page {
    Page { method: "GET", path, scope: Some(scope), also: None, holds: Holds::Fields, route }
}

pub(super) const fn post(path: &'static str, scope: Scope, route: fn() -> Route) -> Page {
    Page { method: "POST", path, scope: Some(scope), also: None, holds: Holds::Fields, route }
}

pub(super) const fn open(method: &'static str, path: &'static str, route: fn() -> Route) -> Page {
    Page { method, path, scope: None, also: None, holds: Holds::Little, route }
}

impl Page {
    pub(super) const fn and(self, scope: Scope) -> Self {
        Self { also: Some(scope), ..self }
    }

    pub(super) const fn with_a_file(self) -> Self {
        Self { holds: Holds::File, ..self }
    }

    /// Whether this page belongs to the user's own account. Users who still have to set up a second factor may open
    /// only these pages.
    pub(super) fn is_own_account(&self) -> bool {
        self.path.starts_with("/account") || self.path == "/tenants"
    }

    /// All scopes that the page requires.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        self.scope.into_iter().chain(self.also)
    }

    /// Finds the page of a request among the [`Pages`] of its scope.
    pub(super) fn of(request: &HttpRequest) -> Option<&'static Self> {
        let Pages(pages) = request.app_data()?;
        let extensions = request.extensions();
        let Pattern(pattern) = extensions.get()?;
        let path = pattern.strip_prefix("/admin")?;
        pages.iter().find(|page| page.method == request.method().as_str() && page.path == path)
    }
}

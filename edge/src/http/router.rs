//! Sends each request to the handler of its method and path. actix's own router compiles each pattern to a regular expression in every
//! thread (8 MiB for each), and tries them one by one.

use std::{
    borrow::Cow,
    future::{Ready, ready},
    task::{Context, Poll},
};

use actix_web::{
    HttpMessage, HttpResponse, Route,
    dev::{Service, ServiceFactory, ServiceRequest, ServiceResponse},
    http::{Method, header},
};
use futures_util::future::{Either, LocalBoxFuture, try_join_all};

use crate::patterns::{self, Patterns, Row};
use base::error::{Code, Error, Result};

/// The pattern that fits a request's path. The router puts it into the request's extensions.
#[derive(Clone, Debug)]
pub struct Pattern(pub Cow<'static, str>);

/// The method whose route answers: that of GET answers HEAD, too.
#[must_use]
pub fn routed(method: &Method) -> &Method {
    if method == Method::HEAD { &Method::GET } else { method }
}

/// The answer to a request whose method is none of its path's methods.
///
/// # Errors
/// `not_found` for a path without methods; `method_not_allowed`.
pub fn without_route(method: &Method, methods: &[&'static str]) -> Result<HttpResponse> {
    if methods.is_empty() {
        return Err(Error::not_found("page"));
    }
    let head = |method: &str| (method == "GET").then_some("HEAD");
    let all: Vec<_> = methods.iter().flat_map(|method| [Some(*method), head(method)]).flatten().collect();
    let all = format!("{}, OPTIONS", all.join(", "));
    if method == Method::OPTIONS {
        return Ok(HttpResponse::NoContent().insert_header((header::ALLOW, all)).finish());
    }
    let mut error = Error::new(Code::MethodNotAllowed, format!("This path accepts only {all}."));
    error.allow = Some(all);
    Err(error)
}

/// Answers with [`without_route`].
pub fn answer_without_route(request: ServiceRequest, methods: &[&'static str]) -> ServiceResponse {
    match without_route(request.method(), methods) {
        Ok(answer) => request.into_response(answer),
        Err(error) => request.error_response(error),
    }
}

/// The routes of a scope: its default service. Of several rows that fit a method and a path, the first counts.
pub struct Router {
    rows: Vec<Row<Route>>,
    elsewhere: Option<Route>,
}

impl Router {
    pub fn new(rows: impl IntoIterator<Item = Row<Route>>) -> Self {
        Self { rows: rows.into_iter().collect(), elsewhere: None }
    }

    /// The route of paths that no row has. Without one they are `not_found`.
    #[must_use]
    pub fn elsewhere(self, route: Route) -> Self {
        Self { elsewhere: Some(route), ..self }
    }
}

impl ServiceFactory<ServiceRequest> for Router {
    type Response = ServiceResponse;
    type Error = actix_web::Error;
    type Config = ();
    type Service = Routes;
    type InitError = ();
    type Future = LocalBoxFuture<'static, std::result::Result<Self::Service, ()>>;

    fn new_service(&self, (): ()) -> Self::Future {
        let rows = self.rows.iter().map(|row| {
            let (method, pattern, handler) = (row.method, row.pattern.clone(), row.value.new_service(()));
            async move { handler.await.map(|value| Row { method, pattern, value }) }
        });
        let rows = try_join_all(rows);
        let elsewhere = self.elsewhere.as_ref().map(|route| route.new_service(()));
        Box::pin(async move {
            let elsewhere = match elsewhere {
                Some(route) => Some(route.await?),
                None => None,
            };
            rows.await.map(|rows| Routes { rows: Patterns::new(rows), elsewhere })
        })
    }
}

type Handler = <Route as ServiceFactory<ServiceRequest>>::Service;
type Answered = std::result::Result<ServiceResponse, actix_web::Error>;

/// The routes of a [`Router`], in one of actix's threads.
pub struct Routes {
    rows: Patterns<Handler>,
    elsewhere: Option<Handler>,
}

impl Service<ServiceRequest> for Routes {
    type Response = ServiceResponse;
    type Error = actix_web::Error;
    type Future = Either<<Handler as Service<ServiceRequest>>::Future, Ready<Answered>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let path = request.match_info().as_str();
        let Some(row) = self.rows.find(request.method().as_str(), path) else {
            let methods = self.rows.methods(path);
            if let Some(route) = self.elsewhere.as_ref().filter(|_| methods.is_empty()) {
                return Either::Left(route.call(request));
            }
            return Either::Right(ready(Ok(answer_without_route(request, &methods))));
        };
        let values: Vec<_> = patterns::values(&row.pattern, path).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        for (name, value) in values {
            request.match_info_mut().add_static(name, value);
        }
        request.extensions_mut().insert(Pattern(row.pattern.clone()));
        Either::Left(row.value.call(request))
    }
}

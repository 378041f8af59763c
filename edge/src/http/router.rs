//! Sends each request to the handler of its method and path. actix's own router compiles each pattern to a regular expression in every
//! thread (8 MiB for each), and tries them one by one.

use std::{
    borrow::Cow,
    future::{Ready, ready},
    task::{Context, Poll},
};

use actix_web::{
    HttpMessage, Route,
    dev::{Service, ServiceFactory, ServiceRequest, ServiceResponse},
};
use futures_util::future::{Either, LocalBoxFuture, try_join_all};

use crate::{
    caller::access,
    patterns::{self, Patterns, Row},
};

/// The pattern that fits a request's path. The router puts it into the request's extensions.
#[derive(Clone, Debug)]
pub struct Pattern(pub Cow<'static, str>);

/// The routes of a scope: its default service. Of several rows that fit a method and a path, the first counts.
pub struct Router(Vec<Row<Route>>);

impl Router {
    pub fn new(rows: impl IntoIterator<Item = Row<Route>>) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl ServiceFactory<ServiceRequest> for Router {
    type Response = ServiceResponse;
    type Error = actix_web::Error;
    type Config = ();
    type Service = Routes;
    type InitError = ();
    type Future = LocalBoxFuture<'static, Result<Self::Service, ()>>;

    fn new_service(&self, (): ()) -> Self::Future {
        let rows = self.0.iter().map(|row| {
            let (method, pattern, handler) = (row.method, row.pattern.clone(), row.value.new_service(()));
            async move { Ok(Row { method, pattern, value: handler.await? }) }
        });
        let rows = try_join_all(rows);
        Box::pin(async move { rows.await.map(|rows| Routes(Patterns::new(rows))) })
    }
}

type Handler = <Route as ServiceFactory<ServiceRequest>>::Service;
type Answered = Result<ServiceResponse, actix_web::Error>;

/// The routes of a [`Router`], in one of actix's threads.
pub struct Routes(Patterns<Handler>);

impl Service<ServiceRequest> for Routes {
    type Response = ServiceResponse;
    type Error = actix_web::Error;
    type Future = Either<<Handler as Service<ServiceRequest>>::Future, Ready<Answered>>;

    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let path = request.match_info().as_str();
        let Some(row) = self.0.find(request.method().as_str(), path) else {
            let error = access::no_route(request.request());
            return Either::Right(ready(Ok(request.error_response(error))));
        };
        let values: Vec<_> = patterns::values(&row.pattern, path).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        for (name, value) in values {
            request.match_info_mut().add_static(name, value);
        }
        request.extensions_mut().insert(Pattern(row.pattern.clone()));
        Either::Left(row.value.call(request))
    }
}

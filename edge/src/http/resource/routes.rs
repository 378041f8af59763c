//! The five routes of a kind, as macros.

/// Defines the five routes of a kind. Tags and paths are literals because utoipa reads them at compile time.
#[macro_export]
macro_rules! world_routes {
    ($resource:ty, $input:ty, $view:ty, $filter:ty, $one:literal, $many:literal, $list:literal, $item:literal) => {
        $crate::world_routes_but_delete!($resource, $input, $view, $filter, $one, $many, $list, $item);
        $crate::delete_route!($resource, $one, $many, $item);
    };
}

/// Like `world_routes!`, without the route that deletes one.
#[macro_export]
macro_rules! world_routes_but_delete {
    ($resource:ty, $input:ty, $view:ty, $filter:ty, $one:literal, $many:literal, $list:literal, $item:literal) => {
                use $crate::http::paging::Items;

        #[utoipa::path(
            get, path = $list,
            tag = $many, operation_id = concat!("list_", $many), summary = concat!("Lists the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), $crate::http::paging::ListParams, $filter),
            responses((status = 200, body = Items<$view>), (status = "default", body = base::error::Problem)),
        )]
        /// A page of the list.
        pub async fn list(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller,
            path: actix_web::web::Path<String>, page: $crate::http::paging::Page<$filter>,
        ) -> base::error::Result<$crate::http::Answer<$crate::http::paging::RawItems>> {
            $crate::http::resource::list::<$resource>(&app, &caller, Some(&path), &page).await
        }

        #[utoipa::path(
            post, path = $list,
            tag = $many, operation_id = concat!("create_", $one), request_body = $input,
            summary = concat!("Creates one entry of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug")),
            responses((status = 201, body = $view), (status = "default", body = base::error::Problem)),
        )]
        /// Creates one.
        pub async fn create(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<String>, body: $crate::http::Body<$input>,
        ) -> base::error::Result<$crate::http::Written<$crate::http::resource::Shown<$view>>> {
            let sent = (&body.value, body.idempotency.as_ref());
            $crate::http::resource::create::<$resource>(&app, &caller, Some(&path), request.path(), sent).await
        }

        #[utoipa::path(
            get, path = $item,
            tag = $many, operation_id = concat!("get_", $one),
            summary = concat!("Reads one entry of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 200, body = $view), (status = "default", body = base::error::Problem)),
        )]
        /// Reads one.
        pub async fn get(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>,
        ) -> base::error::Result<actix_web::HttpResponse> {
            $crate::http::resource::get::<$resource>(&app, &caller, &request, Some(&path.0), &path.1).await
        }

        #[utoipa::path(
            patch, path = $item,
            tag = $many, operation_id = concat!("update_", $one),
            summary = concat!("Changes one entry of the campaign's ", $many, " by a JSON merge patch."),
            request_body(content = $input, content_type = "application/merge-patch+json", description = "JSON merge patch"),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 200, body = $view), (status = "default", body = base::error::Problem)),
        )]
        /// Changes one by a JSON merge patch.
        pub async fn patch(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>, body: $crate::http::Body<serde_json::Value>,
        ) -> base::error::Result<$crate::http::Answer<$crate::http::resource::Shown<$view>>> {
            $crate::http::resource::patch::<$resource>(&app, &caller, &request, Some(&path.0), &path.1, body.value).await
        }
    };
}

/// Defines the route that deletes one. Some kinds have their own instead.
#[macro_export]
macro_rules! delete_route {
    ($resource:ty, $one:literal, $many:literal, $item:literal) => {

        #[utoipa::path(
            delete, path = $item,
            tag = $many, operation_id = concat!("delete_", $one),
            summary = concat!("Deletes one entry of the campaign's ", $many, "."),
            params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Id or slug")),
            responses((status = 204), (status = "default", body = base::error::Problem)),
        )]
        /// Deletes one.
        pub async fn delete(
            app: actix_web::web::Data<$crate::state::Edge>, caller: $crate::caller::Caller, request: actix_web::HttpRequest,
            path: actix_web::web::Path<(String, String)>,
        ) -> base::error::Result<$crate::http::Answer<()>> {
            $crate::http::resource::delete::<$resource>(&app, &caller, &request, Some(&path.0), &path.1).await
        }
    };
}

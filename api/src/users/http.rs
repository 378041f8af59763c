//! `/v1/users`.

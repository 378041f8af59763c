//! Schemas as utoipa derives them, made valid.

use utoipa::openapi::{RefOr, Schema, schema::Object};

/// Fixes schemas that no value could match: an `allOf` of inline objects, each of which rejects the members of the
/// others, and enums beside an object that holds only their description or default. Merges each into one schema.
pub fn mend(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => object.properties.values_mut().for_each(mend),
        Schema::OneOf(any) => any.items.iter_mut().for_each(mend),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(mend),
        Schema::AllOf(all) => {
            all.items.iter_mut().for_each(mend);
            if let Some(mut whole) = joined(&all.items) {
                whole.description = all.description.take().or(whole.description);
                *schema = Schema::Object(whole);
            }
        }
        _ => {}
    }
}

/// Merges the parts into one object, if all of them are inline.
fn joined(parts: &[RefOr<Schema>]) -> Option<Object> {
    let mut whole: Option<Object> = None;
    for part in parts {
        let RefOr::T(Schema::Object(part)) = part else { return None };
        let Some(whole) = &mut whole else {
            whole = Some(part.clone());
            continue;
        };
        whole.properties.extend(part.properties.clone());
        whole.required.extend_from_slice(&part.required);
        whole.description = part.description.clone().or(whole.description.take());
        whole.default = part.default.clone().or(whole.default.take());
    }
    whole
}

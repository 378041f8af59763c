//! A typed value in a `jsonb` column.

use sea_orm::sea_query::{ArrayType, ColumnType, Nullable, Value, ValueType, ValueTypeErr};
use sea_orm::{ColIdx, QueryResult, TryGetError, TryGetable};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// `T` as JSON in the database, and as itself in the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T> std::ops::Deref for Json<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Serialize> From<Json<T>> for Value {
    fn from(json: Json<T>) -> Self {
        // Serialization fails only for maps whose keys are not strings, and our types have none.
        Value::Json(Some(Box::new(serde_json::to_value(json.0).unwrap_or_default())))
    }
}

impl<T: DeserializeOwned> TryGetable for Json<T> {
    fn try_get_by<I: ColIdx>(res: &QueryResult, index: I) -> Result<Self, TryGetError> {
        let value = serde_json::Value::try_get_by(res, index)?;
        serde_json::from_value(value).map(Json).map_err(|e| sea_orm::DbErr::Json(e.to_string()).into())
    }
}

impl<T: Serialize + DeserializeOwned> ValueType for Json<T> {
    fn try_from(v: Value) -> Result<Self, ValueTypeErr> {
        match v {
            Value::Json(Some(json)) => serde_json::from_value(*json).map(Json).map_err(|_| ValueTypeErr),
            _ => Err(ValueTypeErr),
        }
    }
    fn type_name() -> String {
        "Json".to_owned()
    }
    fn array_type() -> ArrayType {
        ArrayType::Json
    }
    fn column_type() -> ColumnType {
        ColumnType::JsonBinary
    }
}

impl<T> Nullable for Json<T> {
    fn null() -> Value {
        Value::Json(None)
    }
}

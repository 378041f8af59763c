//! Variables as a client gives them: numbers by name, `@abilities.dex.mod` written nested or with dots.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Numbers a request may name.
pub const VARIABLES_MAX: usize = 1000;
/// Objects within objects.
pub const DEPTH_MAX: usize = 8;

/// Numbers by their whole names.
#[derive(Debug, Default)]
pub struct Values(HashMap<String, f64>);

impl Values {
    /// Reads the member `variables` of a body.
    ///
    /// # Errors
    /// `validation_failed` with a pointer to what is no number, named twice, too deep or too many.
    pub fn read(given: Option<&Map<String, Value>>) -> Result<Self> {
        let mut values = Self::default();
        if let Some(given) = given {
            values.take(given, "", "/variables", DEPTH_MAX)?;
        }
        Ok(values)
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    fn take(&mut self, members: &Map<String, Value>, prefix: &str, at: &str, depth_left: usize) -> Result<()> {
        for (key, value) in members {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            match value {
                Value::Object(_) if depth_left == 1 => {
                    let message = format!("At most {DEPTH_MAX} objects within each other.");
                    return Err(Error::invalid(pointer, "invalid_value", message));
                }
                Value::Object(inner) => self.take(inner, &name, &pointer, depth_left - 1)?,
                value => self.put(name, value, pointer)?,
            }
        }
        Ok(())
    }

    fn put(&mut self, name: String, value: &Value, pointer: String) -> Result<()> {
        let Some(number) = value.as_f64() else {
            return Err(Error::invalid(pointer, "invalid_value", "A variable is a number, or an object of numbers."));
        };
        if self.0.len() >= VARIABLES_MAX {
            let message = format!("At most {VARIABLES_MAX} variables may be given.");
            return Err(Error::invalid("/variables", "invalid_value", message));
        }
        match self.0.insert(name, number) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(pointer, "invalid_value", "This variable is given twice.")),
        }
    }
}

//! A submitted form: bounded, UTF-8, and sent by one of our pages. This is the only place where the editor reads a body.

use actix_web::{
    HttpRequest,
    dev::Payload,
    http::{Method, header},
    web::{Bytes, BytesMut},
};
use futures_util::stream;

use super::answer::is_htmx;
use base::{
    error::{Code, Error, Result},
    json, text,
};
use edge::{
    http::{body::received, forms::from_our_page},
    users::sessions::Secret,
};

/// How large a form may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A few lines, also from somebody who is not signed in.
    Little,
    /// Fields: the longest text that a row may have, with each character written in at most twelve bytes, and the other fields.
    Fields,
    /// The sign-in form, which may carry another form's fields in base64.
    Carried,
    /// Fields and a file as large as the API's import accepts.
    File,
}

impl Holds {
    pub(super) const fn bytes_max(self) -> usize {
        match self {
            Self::Little => 64 * 1024,
            Self::Carried => Self::Fields.bytes_max() / 3 * 4 + 2 * Self::Little.bytes_max(),
            Self::Fields => 2 * 1024 * 1024,
            Self::File => 33 * 1024 * 1024,
        }
    }
}

/// The largest number of fields in a form.
pub(super) const FIELDS_MAX: usize = 2000;

/// The field with the form's token; htmx sends it as a header.
pub const TOKEN_FIELD: &str = "form_token";
const TOKEN_HEADER: &str = "x-form-token";

/// An uploaded file.
#[derive(Clone, Debug)]
pub struct Upload {
    /// The file name that the browser sent, for people to read. Never open it as a path.
    pub name: String,
    pub bytes: Bytes,
}

/// The fields of a form, in order. Empty for a request without a form.
#[derive(Clone, Debug, Default)]
pub struct Submitted {
    fields: Vec<(String, String)>,
    files: Vec<(String, Upload)>,
    /// The form was too large, so nothing of it was read, not even its token.
    is_too_large: bool,
}

impl Submitted {
    /// Reads the form of a request that changes something, and proves that it comes from a page that was given to the
    /// holder of `secret`. Nothing is read without a secret or if the header holds a wrong token.
    ///
    /// # Errors
    /// `forbidden` for a form from elsewhere, `payload_too_large` (a form with a file reports this itself),
    /// `unsupported_media_type`, `bad_request`.
    pub async fn read(
        request: &HttpRequest,
        payload: &mut Payload,
        secret: Option<&Secret>,
        holds: Holds,
    ) -> Result<Self> {
        match Self::sent(request, payload, secret, holds).await? {
            Sent::Now(form) => Ok(form),
            Sent::FromEarlier(_) => Err(not_of_this_visit()),
        }
    }

    /// [`Submitted::read`] that also gives a form with the token of another session.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn sent(
        request: &HttpRequest,
        payload: &mut Payload,
        secret: Option<&Secret>,
        holds: Holds,
    ) -> Result<Sent> {
        if *request.method() == Method::GET {
            return Ok(Sent::Now(Self::default()));
        }
        from_our_page(request)?;
        let secret = secret.ok_or_else(not_of_this_visit)?;
        let in_header = request.headers().get(TOKEN_HEADER).and_then(|v| v.to_str().ok());
        if in_header.is_some_and(|token| !secret.matches_form_token(token)) {
            return Err(not_of_this_visit());
        }
        let media = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let has_parts = media.to_ascii_lowercase().starts_with("multipart/form-data");
        if has_parts && holds != Holds::File {
            return Err(Error::new(Code::UnsupportedMediaType, "This form does not accept a file."));
        }
        let body = match body(request, payload, holds.bytes_max()).await {
            // Users who chose a file that is too large see the form again.
            Err(error) if error.code == Code::PayloadTooLarge && holds == Holds::File => {
                return Ok(Sent::Now(Self { is_too_large: true, ..Self::default() }));
            }
            body => body?,
        };
        let form = if has_parts { Self::parts(media, body).await? } else { Self::pairs(&body)? };
        let token = form.text(TOKEN_FIELD);
        if in_header.is_some() || secret.matches_form_token(token) {
            return Ok(Sent::Now(form));
        }
        // A browser says where a form comes from. This one is from a page of ours that has a token.
        let is_ours =
            request.headers().contains_key(header::ORIGIN) && !token.is_empty() && !has_parts && !is_htmx(request);
        if is_ours { Ok(Sent::FromEarlier(form)) } else { Err(not_of_this_visit()) }
    }

    fn pairs(body: &[u8]) -> Result<Self> {
        let mut form = Self::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            form.add(name.into_owned(), value.into_owned())?;
        }
        Ok(form)
    }

    async fn parts(media: &str, body: Bytes) -> Result<Self> {
        let broken = |error: multer::Error| {
            Error::new(Code::BadRequest, "This form cannot be read. Reload the page and send it again.")
                .with_cause(error.to_string())
        };
        let boundary = multer::parse_boundary(media).map_err(broken)?;
        let whole = stream::once(std::future::ready(Ok::<_, std::convert::Infallible>(body)));
        let mut parts = multer::Multipart::new(whole, boundary);
        let mut form = Self::default();
        while let Some(part) = parts.next_field().await.map_err(broken)? {
            let name = part.name().unwrap_or_default().to_owned();
            match part.file_name().map(ToOwned::to_owned) {
                None => {
                    let bytes = part.bytes().await.map_err(broken)?;
                    let text = String::from_utf8(bytes.to_vec());
                    form.add(name, text.map_err(|_| Error::new(Code::BadRequest, "The form is not UTF-8."))?)?;
                }
                Some(file) => {
                    let bytes = part.bytes().await.map_err(broken)?;
                    // For a file field that was left empty, a browser sends an empty file.
                    if !file.is_empty() || !bytes.is_empty() {
                        form.files.push((name, Upload { name: file, bytes }));
                    }
                }
            }
        }
        Ok(form)
    }

    /// Adds a field. Browsers end lines with CR LF; rows are stored with LF.
    fn add(&mut self, name: String, value: String) -> Result<()> {
        if self.fields.len() >= FIELDS_MAX {
            return Err(Error::new(Code::BadRequest, format!("A form may have at most {FIELDS_MAX} fields.")));
        }
        let name = text::on_one_line(&name).into_owned();
        let value = text::checked(&value).map_err(|unfit| json::unfit_text(&format!("/{name}"), unfit))?.into_owned();
        self.fields.push((name, value));
        Ok(())
    }

    /// A field's value; empty if the field is missing.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A field's value, if it was sent. Browsers do not send an unticked box.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Whether a box was ticked, or a button of this name pressed.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All values of a name, such as the ticked boxes of a list.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// An uploaded file. The form needs `enctype="multipart/form-data"`.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Upload> {
        self.files.iter().find(|(n, _)| n == name).map(|(_, file)| file)
    }

    /// Whether the form was too large. Then it is empty, and nothing proves which page sent it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The version of the row that the form was loaded with.
    #[must_use]
    pub fn version(&self) -> Option<i64> {
        self.get("version").and_then(|version| version.parse().ok())
    }
}

/// A form, by the session that its page was given to.
pub(super) enum Sent {
    Now(Submitted),
    /// The user has signed in again since. Nothing may be done with it before the user says so.
    FromEarlier(Submitted),
}

/// The error for a form with another session's token.
pub(super) fn not_of_this_visit() -> Error {
    let why = "This form does not belong to your session, or your session is over. Go back, reload the page, and send it again.";
    Error::new(Code::Forbidden, why)
}

/// The bytes of a request, up to a limit.
pub(super) async fn body(request: &HttpRequest, payload: &mut Payload, bytes_max: usize) -> Result<Bytes> {
    received(request, payload, bytes_max, || too_large(bytes_max)).await.map(BytesMut::freeze)
}

/// The error for a form of more than `bytes_max` bytes.
pub(super) fn too_large(bytes_max: usize) -> Error {
    Error::new(Code::PayloadTooLarge, format!("A form may have at most {bytes_max} bytes."))
}

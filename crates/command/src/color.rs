//! Whether texts have colors: by option, terminal and standard variables.

#[cfg(feature = "color")]
mod choice {
    use anstream::stream::RawStream;
    use anstream::{AutoStream, ColorChoice};
    use clap::builder::StyledStr;

    use crate::looks::When;

    /// Sets when all texts have colors, including the parser's.
    pub fn choose(when: When) {
        let choice = match when {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        };
        choice.write_global();
    }

    /// Whether text on this stream has colors.
    pub fn has_color(stream: &impl RawStream) -> bool {
        AutoStream::choice(stream) != ColorChoice::Never
    }

    /// A text of the parser for this stream.
    pub fn styled(text: &StyledStr, stream: &impl RawStream) -> String {
        if has_color(stream) { text.ansi().to_string() } else { text.to_string() }
    }
}

#[cfg(not(feature = "color"))]
mod choice {
    use clap::builder::StyledStr;

    use crate::looks::When;

    /// Does nothing: this becalm has no colors.
    pub const fn choose(_: When) {}

    /// Whether text on this stream has colors.
    pub const fn has_color<S>(_: &S) -> bool {
        false
    }

    /// A text of the parser.
    pub fn styled<S>(text: &StyledStr, _: &S) -> String {
        text.to_string()
    }
}

pub use choice::{choose, has_color, styled};

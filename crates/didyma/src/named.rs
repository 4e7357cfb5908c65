//! Choices with names: on the command line, in files, in tables.

/// A choice that has a name on the command line and in files.
pub trait Named: Copy + PartialEq + 'static {
    /// All of them with their names.
    const ALL: &'static [(&'static str, Self)];

    /// Other names that are understood.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .chain(Self::ALIASES)
            .find(|(known, _)| *known == name)
            .map(|(_, choice)| *choice)
    }

    /// The one of this name, or a sentence that lists them.
    fn parse(name: &str) -> Result<Self, String> {
        Self::named(name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{name} is none of {}", names.join(", "))
        })
    }

    /// Its name.
    fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, choice)| *choice == self);
        known.map(|(name, _)| *name).expect("every choice has a name")
    }
}

/// A [`Named`] choice in files: its name.
macro_rules! serde_by_name {
    ($($choice:ty),+) => {$(
        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_str($crate::named::Named::name(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(from)?;
                $crate::named::Named::parse(&name).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use serde_by_name;

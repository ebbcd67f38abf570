//! Whether traces are wanted, by the variables that OpenTelemetry defines for it.
//!
//! Where to, with which headers and how fast is read from `OTEL_EXPORTER_OTLP_*` by the exporter itself. Here it is only decided
//! whether there is to be one: nobody who has said nothing is traced.

/// What the environment says about traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Nobody wants them.
    None,
    /// They are to be sent.
    Send {
        /// What the service is called, where the environment says it.
        service: Option<String>,
    },
    /// They are wanted in a way that is not there. Says what is not understood.
    Impossible(String),
}

impl Wish {
    /// Reads it from variables, given by their names. One that is empty is as one that is not there.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let of_traces = |rest: &str| {
            let own = said(&format!("OTEL_EXPORTER_OTLP_TRACES_{rest}"));
            own.or_else(|| said(&format!("OTEL_EXPORTER_OTLP_{rest}")))
        };
        if said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self::None;
        }
        if of_traces("ENDPOINT").is_none() {
            return Self::None;
        }
        match said("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Self::None,
            Some(_) => {
                return Self::Impossible(
                    "`OTEL_TRACES_EXPORTER` can be `otlp` or `none`".to_owned(),
                );
            }
        }
        match of_traces("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => Self::Send {
                service: said("OTEL_SERVICE_NAME"),
            },
            Some(_) => Self::Impossible(
                "`OTEL_EXPORTER_OTLP_PROTOCOL` can be `http/protobuf`, which collectors take at port 4318"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Wish {
        Wish::read(|name| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const THERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");

    fn send(service: Option<&str>) -> Wish {
        Wish::Send {
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_where_to() {
        assert_eq!(read(&[]), Wish::None);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Wish::None);
        assert_eq!(read(&[("OTEL_TRACES_EXPORTER", "otlp")]), Wish::None);
        assert_eq!(read(&[THERE]), send(None));
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost/x");
        assert_eq!(read(&[own]), send(None));
        assert_eq!(
            read(&[THERE, ("OTEL_SERVICE_NAME", "desk")]),
            send(Some("desk"))
        );
    }

    #[test]
    fn it_is_turned_off_as_the_standard_says() {
        assert_eq!(read(&[THERE, ("OTEL_SDK_DISABLED", "TRUE")]), Wish::None);
        assert_eq!(read(&[THERE, ("OTEL_SDK_DISABLED", "false")]), send(None));
        assert_eq!(read(&[THERE, ("OTEL_TRACES_EXPORTER", "none")]), Wish::None);
    }

    #[test]
    fn what_is_not_there_is_said_and_not_guessed() {
        for wrong in [
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ] {
            let read = read(&[THERE, wrong]);
            assert!(matches!(read, Wish::Impossible(_)), "{wrong:?}: {read:?}");
        }
        let mixed = [
            THERE,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ];
        assert_eq!(read(&mixed), send(None));
    }
}

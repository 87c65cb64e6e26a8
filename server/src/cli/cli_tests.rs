//! Tests of the command line as a whole.

use super::*;
use clap::CommandFactory;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn the_commands_that_the_help_shows_are_understood() {
    let lines = [
        "nova try",
        "nova try --records 1000 --data ./somewhere",
        "nova try some.log",
        "nova serve",
        "nova serve --listen 0.0.0.0 --advertise star.example",
        "nova serve --data /var/lib/nova --cores 4 --segment-bytes 512MiB --sync fdatasync",
        "nova serve --allow-corrupt --tls-names a,b --recent-bytes 1GiB --spin-us 20",
        "nova append logs/some",
        "nova append logs/some --linger 0 --header by=me --quiet --no-create",
        "nova append a/b/c --star star.example:7400 --ca ca.pem --json",
        "nova read logs/some --from 1000 --count 1",
        "nova read logs/some --tail 10 --follow --json",
        "nova read logs/some --since 15m",
        "nova tail logs/some --data d",
        "nova bucket create logs --retention-age 7d --create-stream-on-append",
        "nova bucket list --prefix l --start-after la --limit 10",
        "nova bucket describe logs",
        "nova bucket reconfigure logs --policy fenced",
        "nova bucket delete logs",
        "nova stream create logs/some --ensure --timestamps arrival",
        "nova stream list logs --json",
        "nova stream describe logs/some",
        "nova stream reconfigure logs/some --retention-bytes forever",
        "nova stream delete logs/some",
        "nova stream fence logs/some me --if-fence you --if-tail 7",
        "nova stream trim logs/some 100",
        "nova star",
    ];
    for line in lines {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lines = [
        "nova",
        "nova append",
        "nova append logs",
        "nova append Logs/some",
        "nova append logs/some --linger 2s",
        "nova append logs/some --batch-size 2MiB",
        "nova append logs/some --header nothing",
        "nova append logs/some --star a:1",
        "nova append logs/some --ca ca.pem",
        "nova append logs/some --star nowhere --ca ca.pem",
        "nova read logs/some --from 1 --tail 1",
        "nova read logs/some --from -1",
        "nova bucket create -logs",
        "nova stream trim logs/some",
        "nova serve --port 70000",
        "nova serve --listen here",
        "nova serve --segment-bytes big",
    ];
    for line in lines {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn every_command_explains_itself() {
    fn check(command: &clap::Command) {
        assert!(
            command.get_about().is_some(),
            "{} has no text",
            command.get_name()
        );
        for argument in command.get_arguments() {
            let is_told = argument.get_help().is_some();
            assert!(is_told, "{} {}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

#[test]
fn all_exit_codes_are_told() {
    let codes = [
        Exit::Done,
        Exit::Local,
        Exit::Usage,
        Exit::Refused,
        Exit::Unreachable,
        Exit::Ambiguous,
        Exit::Different,
        Exit::Missed,
        Exit::Directory,
        Exit::Machine,
        Exit::Port,
        Exit::Certificates,
        Exit::Damaged,
        Exit::Disk,
        Exit::Star,
        Exit::Interrupted,
    ];
    for code in codes {
        let line = format!("\n  {:<5}", code as u8);
        assert!(EXIT_CODES.contains(&line), "{code:?}");
    }
}

//! The checks of the document find what is wrong: their canaries.

use super::*;

const MODEL: &str = "VARIABLES\n  log,   \\* a\n  table  \\* b\nvars == <<log, table>>\n\
    Init ==\n  /\\ log = 0\nHelp(x) == x + 1\nAdd(x) ==\n  /\\ log' = x\n  /\\ UNCHANGED table\n\
    Next == Add(1)\n";

#[test]
fn a_model_is_known_by_its_variables_and_actions() {
    assert_eq!(variables(MODEL), ["log", "table"]);
    assert_eq!(actions(MODEL), ["Add"]);
    let text = "| `log`, `Add` | `src/lib.rs` | `root` | |\n";
    assert_eq!(check_model(text, MODEL), ["`table` has no row"]);
    let text = format!("{text}| `table` | none | | |\n");
    assert!(check_model(&text, MODEL).is_empty());
}

#[test]
fn code_that_is_not_there_is_found() {
    let root = crate::folder();
    let row = |file: &str, name: &str| format!("| `x` | `{file}` | `{name}` | why |\n");
    assert!(check_code(&row("src/lib.rs", "folder"), &root).is_empty());
    assert_eq!(
        check_code(&row("src/gone.rs", "folder"), &root),
        ["line 1: there is no src/gone.rs"]
    );
    assert_eq!(
        check_code(&row("src/lib.rs", "fold"), &root),
        ["line 1: src/lib.rs has no `fold`"]
    );
}

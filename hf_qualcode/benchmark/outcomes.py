"""What may become of a row of CodeNet's metadata, of a measurement and of a problem: closed sets, and what each means.

Every row read ends in exactly one of `SUBMISSION_OUTCOMES`, every measurement of a kept program in one of
`MEASUREMENT_OUTCOMES`, every problem in one of `PROBLEM_OUTCOMES`, so each table adds up. The first rule that applies
gives the outcome; the order of the rows plays no part.
"""

KEPT = "kept"
NONE_KEPT = "no_program_kept"

# Why a problem has no statement that can be used. Its rows that passed until then end under the same name.
STATEMENT_OUTCOMES = {
    "statement_missing": "The problem has no page in `problem_descriptions`.",
    "statement_unreadable": "The problem's page is not a readable text file, or a link that leads out of the folder.",
    "statement_empty": "The problem's page holds no text.",
    "statement_not_english": "The language detector took the problem's statement for another language than English.",
}

SUBMISSION_OUTCOMES = {
    KEPT: "An accepted Python program for a problem with an English statement; it compiles as Python 3.",
    "malformed_row": "A line of the metadata that is not a row: an unclosed quote, too few or too many fields, a line "
    "break inside a field, or a file whose head lacks a column that is needed.",
    "duplicate_id": "A further copy of a row that is there already, the same in every field.",
    "conflicting_id": "Rows of one submission id differ, so that none of them can be believed.",
    "unsafe_id": "The submission's id has other characters than letters, digits, `-` and `_`, so that it could name a "
    "file elsewhere.",
    "other_problem": "The row names another problem than the file it stands in.",
    "other_language": "The language is not exactly `Python`.",
    "not_accepted": "The status is not `Accepted`: the judge refused the program.",
    "status_misspelled": "The status reads like `Accepted` but has other letter case or spaces.",
    **STATEMENT_OUTCOMES,
    "missing_file": "The program's file does not exist.",
    "unreadable_file": "The program's file cannot be read, or is not a regular file.",
    "unsafe_path": "The program's file is a link that leads out of the folder.",
    "too_large": "The program's file is larger than 256 KiB, far above any real one.",
    "not_utf8": "The program is neither UTF-8 nor in the encoding that its first lines name (PEP 263).",
    "empty_file": "The program's file holds nothing but white space.",
    "does_not_compile": "The program is not Python 3 (most are Python 2), or holds NUL characters.",
    "failed": "Reading the program met an error in this package or in Python.",
    "id_in_other_problem": "Another problem has a program with the same submission id, so that the id names neither.",
}

MEASUREMENT_OUTCOMES = {
    "used": "A positive finite number.",
    "zero": "Zero: the judge's clock was too coarse, or nothing was measured.",
    "blank": "The field is empty, or there is no such column.",
    "negative": "A number below zero, which some judges write for what they did not measure.",
    "not_a_number": "Not a finite decimal number (`nan` and `inf` are none either).",
}
SMELL_OUTCOMES = {
    "used": "The engine read the program; its number of smells is the value, and 0 is a good one.",
    "unlabelled": "The engine could not read the program: it is unlabelled, not clean.",
    "no_engine": "No smell engine was asked for.",
}

PROBLEM_OUTCOMES = {
    KEPT: "An English statement and at least one kept program.",
    NONE_KEPT: "An English statement, but no kept program.",
    **STATEMENT_OUTCOMES,
    "metadata_missing": "The problem is in `problem_list.csv` but has no file of submissions.",
    "metadata_unreadable": "The file of submissions cannot be read, or its head lacks a column that is needed.",
    "malformed_row": "A line of `problem_list.csv` that is not a row.",
    "duplicate_id": "A further line of `problem_list.csv` with an id that was there before.",
    "unsafe_id": "The problem's id has other characters than letters, digits, `-` and `_`.",
    "unsafe_path": "The file of submissions is a link that leads out of the folder.",
}

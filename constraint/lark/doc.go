// Package lark reads grammars in the Lark dialect of llguidance: every
// construct of the dialect, with line and column, and with errors that say
// what is wrong and what to do.
//
// # Reading
//
// [Parse] reads and checks a grammar. What it accepts llguidance compiles,
// and what llguidance compiles it accepts, except where llguidance would go
// on silently with something a user cannot have meant:
//
//   - an unknown %llguidance option;
//   - a rule that can never end, because every alternative needs the rule
//     itself;
//   - a repeated %json, %lark or @grammar under temperature or max_tokens,
//     which would not be repeated;
//   - one name for a rule and an imported terminal;
//   - text that is malformed where start does not reach;
//   - a source over [MaxSize].
//
// The compile limits of llguidance (lexer fuel, grammar size), the JSON Schemas
// inside %json, the names of special tokens and the values of Unicode
// properties that Go has no table for are left to llguidance. A byte-order mark is dropped,
// CRLF is a line end.
//
// Errors are of type [*Error]; Parse reports the first one only. Columns
// count characters. What is odd but harmless is in [Grammar.Warnings].
//
// # Tree
//
// [Grammar] holds the items of the source in order, with positions;
// [Grammar.String] prints them so that reading the text again gives the same
// tree. Comments are not kept.
//
// # Translation
//
// [Grammar.GBNF] (llama.cpp) and [Grammar.EBNF] (XGrammar: vLLM, SGLang)
// translate what those dialects can express and refuse the rest by
// construct, line and column. [RegexToGBNF] and [RegexToEBNF] do it for one
// regular expression.
package lark

// Package frame reads what a client sends over a pipe: JSON-RPC, one message a
// line. A line that is no message is a [Fault], which has an answer, and not the
// end of the conversation; the SDKs behind it get nothing they cannot read.
//
// A line has a bound. What is over it is read past without being kept.
package frame

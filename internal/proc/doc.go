// Package proc is what starting other programs has in common: the environment
// they get, the process group they end with, and the end of what they say.
//
// A program gets a short list of plain variables and those that the settings
// name, never everything: keys of one service are no business of another.
package proc

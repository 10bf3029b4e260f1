package tools

import (
	"fmt"
	"slices"
	"strings"
)

// Validate reports what is wrong with an entry as it is written; whether the
// tool can be had, only Open knows.
func (c Config) Validate() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Builtin != "" && !slices.Contains(Builtins, c.Builtin) {
		return fmt.Errorf("%q is no built-in tool; there are %s", c.Builtin, strings.Join(Builtins, ", "))
	}
	return nil
}

// WriteResult puts the text of a tool's result into a folder of the graph.
func WriteResult(graph, folder, name, text string) error {
	if err := place(graph, folder, name, text, true); err != nil {
		return fileError(name, err)
	}
	return nil
}

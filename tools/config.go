package tools

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Defaults of Config.
const (
	DefaultTimeout     = time.Minute
	DefaultOutputBytes = 8 << 10
)

// Policy says whether a tool may be called.
type Policy string

// Allow runs every call, Ask waits for a person, Deny offers the tool to no
// model and ends the turn of one that calls it all the same.
const (
	Allow Policy = "allow"
	Ask   Policy = "ask"
	Deny  Policy = "deny"
)

// Config is one entry of `tools:`. Exactly one of Builtin, Command and MCP is
// set.
type Config struct {
	Builtin string   `json:"builtin,omitempty"`
	Command []string `json:"command,omitempty"` // a program and its first arguments
	MCP     *Server  `json:"mcp,omitempty"`
	// Only lists the tools of the MCP server that are offered; empty means
	// all of them.
	Only []string `json:"only,omitempty"`
	// Prefix stands before the names of the MCP server's tools.
	Prefix string `json:"prefix,omitempty"`
	// Policy of these tools, and those for single tools of an MCP server by
	// their names there.
	Policy   Policy            `json:"policy,omitempty"` // empty: Allow
	Policies map[string]Policy `json:"policies,omitempty"`

	Timeout     time.Duration `json:"timeout,omitempty"`      // 0: DefaultTimeout
	OutputBytes int           `json:"output_bytes,omitempty"` // 0: DefaultOutputBytes
	// Dir is the working folder of a program, or what a built-in sees of the
	// graph; empty: Place.Dir, and all of the graph.
	Dir string `json:"dir,omitempty"`
	// Env lists the variables a program gets besides the plain ones.
	Env []string `json:"env,omitempty"`
	// Given are variables that a program gets with the values they have here:
	// those of whoever names it in a call, and not of this process. They are
	// kept out of everything that is written.
	Given []Variable `json:"-"`
}

// Variable is one variable of an environment, or a header.
type Variable struct{ Name, Value string }

// Server is an MCP server: a command that speaks on stdin and stdout, or the
// address of one that speaks HTTP.
type Server struct {
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	// Headers of each request; a value is the name of the environment
	// variable that holds it.
	Headers map[string]string `json:"headers,omitempty"`
	// Given are headers with the values they have here; like Config.Given.
	Given []Variable `json:"-"`
	// Name is what errors call a server that somebody names in a call; its
	// address may hold a key then, and is kept out of what is written too.
	Name string `json:"-"`
}

// Place is where the calls come from.
type Place struct {
	// Root is the graph; empty outside one, where built-ins do not exist.
	Root string
	// Dir is the working folder of programs that name none.
	Dir string
	// Notes is the folder of write_note, below Root.
	Notes string
	// Peers are the agents that send_message reaches.
	Peers []Peer
}

// Peer is an agent that takes messages.
type Peer struct {
	Name    string
	Input   string // its folder, below Place.Root
	MaxHops int
}

func (c Config) check() error {
	n := 0
	for _, set := range []bool{c.Builtin != "", len(c.Command) > 0, c.MCP != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("a tool is one of a built-in, a command and an MCP server")
	case c.MCP != nil && (len(c.MCP.Command) > 0) == (c.MCP.URL != ""):
		return errors.New("an MCP server has one of command and url")
	case c.MCP == nil && (len(c.Only) > 0 || c.Prefix != "" || len(c.Policies) > 0):
		return errors.New("only, prefix and policies are for MCP servers")
	}
	for _, p := range append([]Policy{c.Policy}, values(c.Policies)...) {
		switch p {
		case "", Allow, Ask, Deny:
		default:
			return fmt.Errorf("policy is %q; it is allow, ask or deny", p)
		}
	}
	if c.Timeout < 0 || c.OutputBytes < 0 {
		return errors.New("timeout and output_bytes cannot be negative")
	}
	return nil
}

func values[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (c Config) policy(tool string) Policy {
	if p := c.Policies[tool]; p != "" {
		return p
	}
	if c.Policy == "" {
		return Allow
	}
	return c.Policy
}

// Missing says what of the entry is not there on this machine. Nothing is
// started for it; nil where nothing is missing.
func (c Config) Missing() error {
	switch {
	case len(c.Command) > 0:
		_, err := findProgram(c.Command[0])
		if err != nil && strings.ContainsAny(c.Command[0], `/\\`) {
			return fmt.Errorf("there is no program %s", c.Command[0])
		}
		return err
	case c.MCP != nil && len(c.MCP.Command) > 0:
		if _, err := exec.LookPath(c.MCP.Command[0]); err != nil {
			return fmt.Errorf("there is no program %s", c.MCP.Command[0])
		}
	case c.MCP != nil:
		for header, variable := range c.MCP.Headers {
			if _, ok := os.LookupEnv(variable); !ok {
				return fmt.Errorf("the header %s needs the environment variable %s, which is not set", header, variable)
			}
		}
	}
	return nil
}

// label names the entry in errors.
func (c Config) label() string {
	switch {
	case c.Builtin != "":
		return c.Builtin
	case len(c.Command) > 0:
		return c.Command[0]
	case c.MCP != nil && c.MCP.Name != "":
		return "MCP server " + c.MCP.Name
	case c.MCP != nil && c.MCP.URL != "":
		return "MCP server " + plainURL(c.MCP.URL)
	case c.MCP != nil && len(c.MCP.Command) > 0:
		return "MCP server " + c.MCP.Command[0]
	}
	return "tool"
}

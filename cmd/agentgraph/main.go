// Command agentgraph runs a folder of agents: drop a file in, get an answer.
package main

import (
	"context"
	"os"

	"agentgraph/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

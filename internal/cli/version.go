package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release that CHANGELOG.md describes.
const version = "0.1.0"

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "The version, and what it was built from",
		Example: `  agentgraph version --json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			v := readVersion()
			if a.json {
				return a.printJSON(v)
			}
			line := "agentgraph " + v.Version
			if v.Revision != "" {
				line += " (" + v.Revision[:min(12, len(v.Revision))]
				if v.Modified {
					line += ", modified"
				}
				line += ")"
			}
			_, err := fmt.Fprintf(a.stdout, "%s %s %s\n", line, v.Go, v.Platform)
			return err
		},
	}
	a.jsonFlag(cmd, "print one JSON object")
	return cmd
}

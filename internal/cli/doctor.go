package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/internal/watch"
	"agentgraph/turn"
)

// severityNote is a finding that is no fault.
const severityNote agents.Severity = "note"

// Bounds below which doctor warns.
const (
	lowDisk   = 200 << 20
	clockSkew = 2 * time.Second
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "What is wrong with this set-up, and why files are not inputs",
		Long: `Looks at what check does not: the native library, each file in an input folder
that is ignored and why, rights on the folders, watch limits, network file
systems, clock and disk. It changes nothing but for one temporary file.

Exit codes: 0 nothing or notes, 1 warnings, 2 errors.`,
		Example: `  agentgraph doctor mygraph`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := dirArg(args)
			g, err := loadGraph(dir, "")
			if err != nil {
				return err
			}
			d := doctor{g: g, now: time.Now}
			d.native()
			d.models(cmd.Context())
			for _, ag := range g.Agents {
				d.inputs(ag)
				d.rights(ag)
			}
			d.fileSystem()
			d.watches("/proc/sys/fs/inotify")
			if err := cmd.Context().Err(); err != nil {
				return err // what was found of models may be its doing
			}
			n := len(g.Agents)
			return a.report(checkReport{Findings: d.found, Agents: &n}, agents.Printable(dir)+": "+counted(n, "agent"))
		},
	}
	a.jsonFlag(cmd, "print one JSON object with every finding")
	return cmd
}

type doctor struct {
	g     *agents.Graph
	now   func() time.Time
	found []agents.Finding
}

func (d *doctor) say(sev agents.Severity, path, msg, hint string) {
	f := agents.Finding{Severity: sev, Msg: msg, Hint: hint}
	if path != "" {
		f.File = d.g.Rel(path)
	}
	d.found = append(d.found, f)
}

func (d *doctor) native() {
	if !constraint.LocalEngine("").Masks {
		d.say(agents.SeverityError, "", constraint.ErrNotBuilt.Error(), "")
	}
}

func (d *doctor) models(ctx context.Context) {
	seen := map[modelKey]bool{}
	for _, ag := range d.g.Agents {
		spec := ag.Settings.ModelSpec
		if ag.Err != nil || seen[keyOf(spec)] {
			continue
		}
		seen[keyOf(spec)] = true
		at := modelPlacer(d.g, "")(ag)
		d.found = append(d.found, checkModel(ctx, d.g, spec, at)...)
		if err := reachServer(ctx, spec); err != nil {
			d.found = append(d.found, modelFinding(d.g, err, at))
		}
		d.found = append(d.found, checkFallback(ctx, d.g, ag, seen)...)
	}
}

// inputs explains each file that is not an input.
func (d *doctor) inputs(ag *agents.Agent) {
	if ag.Err != nil {
		d.say(agents.SeverityError, ag.Dir, "the agent does not run: "+ag.Err.Error(), "'agentgraph check' lists what is wrong")
	}
	for _, in := range ag.Inputs {
		entries, err := os.ReadDir(in)
		if errors.Is(err, fs.ErrNotExist) {
			d.say(severityNote, in, "the input folder of "+ag.Name+" does not exist yet", "")
			continue
		}
		if err != nil {
			d.say(agents.SeverityError, in, "the input folder cannot be read: "+osCause(err).Error(), "let this user read it")
			continue
		}
		for _, e := range entries {
			path := filepath.Join(in, e.Name())
			info, reason, err := agents.Inspect(d.g.Root, path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				d.say(agents.SeverityWarning, path, "cannot be looked at: "+osCause(err).Error(), "let this user read it")
			case reason != "":
				d.say(severityNote, path, "not an input of "+ag.Name+": "+reason, "")
			case info.Size() > int64(ag.Settings.InputBytes):
				d.say(agents.SeverityWarning, path, fmt.Sprintf("it has %d bytes, more than input_bytes allows (%d)", info.Size(), ag.Settings.InputBytes), "split it, or raise limits: input_bytes")
			default:
				d.text(path, ag.Settings.InputBytes)
			}
		}
	}
}

// text finds inputs whose bytes would be refused; limit bounds what is read.
func (d *doctor) text(path string, limit int) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, int64(limit))); err == nil {
			if msg, hint := turn.NotText("it", data); msg != "" {
				d.say(agents.SeverityWarning, path, "will be refused: "+msg, hint)
			}
			return
		}
	}
	d.say(agents.SeverityWarning, path, "cannot be read: "+osCause(err).Error(), "let this user read it")
}

// rights finds folders that a run could not write to.
func (d *doctor) rights(ag *agents.Agent) {
	if ag.LeadsOut() {
		return // nothing is written there
	}
	for _, dir := range []string{ag.OutputDir, ag.TurnsDir} {
		at := dir
		for {
			if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
				break
			}
			at = filepath.Dir(at)
		}
		if err := writable(at); err != nil {
			d.say(agents.SeverityError, at, "cannot be written to: "+err.Error(), "let this user write to it")
		}
	}
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".agentgraph-doctor-*.tmp")
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			return pe.Err
		}
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// fileSystem looks at the disk and at the clock that stamps its files.
func (d *doctor) fileSystem() {
	root := d.g.Root
	if name := watch.NetworkFS(root); name != "" {
		d.say(severityNote, root, "lies on "+name+", a network file system: folders are polled, because changes by other machines are not reported", "")
	}
	if free, ok := watch.Free(root); ok && free < lowDisk {
		d.say(agents.SeverityWarning, root, fmt.Sprintf("only %d MB are free on this disk", free>>20), "make room; a full disk stops every publish")
	}
	before := d.now()
	f, err := os.CreateTemp(root, ".agentgraph-doctor-*.tmp")
	if err != nil {
		d.say(agents.SeverityError, root, "the graph's folder cannot be written to: "+err.Error(), "let this user write to it; .agentgraph and log are made there")
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Sync(); err != nil {
		d.say(agents.SeverityError, root, "this file system does not sync files: "+err.Error(), "move the graph to another disk; answers could be lost in a crash")
	}
	if info, err := f.Stat(); err == nil {
		if skew := info.ModTime().Sub(before); skew > clockSkew || skew < -clockSkew {
			d.say(agents.SeverityWarning, root, fmt.Sprintf("the file system's clock differs from this machine's by %s", skew.Round(time.Second)), "set both clocks; {timestamp} in names comes from this machine")
		}
	}
}

// watches compares the folders to watch with what the kernel allows.
func (d *doctor) watches(proc string) {
	limit := func(name string) (int, bool) {
		b, err := os.ReadFile(filepath.Join(proc, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		return n, err == nil
	}
	// agents/, and for each agent its folder, system and its inputs.
	folders := 2
	for _, ag := range d.g.Agents {
		folders += 2 + len(ag.Inputs)
	}
	if n, ok := limit("max_user_watches"); ok && n < 2*folders {
		d.say(agents.SeverityWarning, "", fmt.Sprintf("%d folders are to be watched and the kernel allows %d watches to all programs of this user", folders, n),
			fmt.Sprintf("sudo sysctl fs.inotify.max_user_watches=%d; folders beyond the limit are polled", max(8192, 4*folders)))
	}
	if n, ok := limit("max_user_instances"); ok && n < 8 {
		d.say(agents.SeverityWarning, "", fmt.Sprintf("the kernel allows %d watchers to this user", n), "sudo sysctl fs.inotify.max_user_instances=128")
	}
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/model/openai"
)

// modelsCommand is what the models of a graph can do; commands about models
// stand below it.
func (a *app) modelsCommand() *cobra.Command {
	var probe bool
	cmd := &cobra.Command{
		Use:   "models [DIR]",
		Short: "The models, and what they are shown to enforce",
		Long: `Lists what each model holds while it generates, kind by kind: what is declared,
what a probe has shown, and when. A probe asks a server for an answer that no
unconstrained model would give. The first turn that needs a kind probes it;
results are kept for each server and version. --probe asks again now.`,
		Example: `
  agentgraph models mygraph
  agentgraph models --probe
  agentgraph models --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.listModels(cmd.Context(), dirArg(args), probe)
		},
	}
	cmd.Flags().BoolVar(&probe, "probe", false, "ask each server now, whatever is known")
	a.jsonFlag(cmd, "print one JSON object")
	cmd.AddCommand(a.modelsTuneCommand())
	return cmd
}

// modelRow is one model with its kinds.
type modelRow struct {
	Name   string    `json:"name"`
	Engine string    `json:"engine"`
	Server string    `json:"server,omitempty"`
	Kinds  []kindRow `json:"kinds"`
	Error  string    `json:"error,omitempty"`
}

// kindRow says who says that a model holds a kind; null is nobody.
type kindRow struct {
	Kind     constraint.Kind `json:"kind"`
	Declared *bool           `json:"declared"`
	Probed   *bool           `json:"probed"`
	Detail   string          `json:"detail,omitempty"`
	Seen     *time.Time      `json:"last_seen"`
	Version  string          `json:"version,omitempty"`
	Travels  string          `json:"travels,omitempty"`
}

// listModels prints what each model of the graph holds.
func (a *app) listModels(ctx context.Context, dir string, probe bool) error {
	g, err := loadGraph(dir, "")
	if err != nil {
		return err
	}
	rows := []modelRow{}
	failed := false
	for _, spec := range usedModels(g) {
		row := describeModel(ctx, spec, probe)
		if err := ctx.Err(); err != nil {
			return err
		}
		if row.Error != "" {
			failed = true
			fmt.Fprintf(a.stderr, "agentgraph: %s\n", agents.Printable(row.Error))
		}
		rows = append(rows, row)
	}
	if a.json {
		err = a.printJSON(struct {
			Models []modelRow `json:"models"`
		}{rows})
	} else {
		err = a.modelTable(rows)
	}
	if err == nil && failed {
		return exitWith(exitNotCompleted)
	}
	return err
}

// usedModels are the entries of models: and what agents name beside them, also
// under fallback:, each once, by name.
func usedModels(g *agents.Graph) []agents.ModelSpec {
	byName := maps.Clone(g.Models)
	for _, ag := range g.Agents {
		if ag.Err != nil {
			continue
		}
		for _, spec := range slices.Insert(slices.Clone(ag.Settings.Fallback), 0, ag.Settings.ModelSpec) {
			if spec.Name != "" {
				byName[spec.Name] = spec
			}
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b agents.ModelSpec) int { return cmp.Compare(a.Name, b.Name) })
}

func describeModel(ctx context.Context, spec agents.ModelSpec, probe bool) modelRow {
	row := modelRow{Name: modelName(spec)}
	if spec.Server != "" {
		describeServer(ctx, spec, probe, &row)
		return row
	}
	e := engineOf(ctx, spec)
	row.Engine = e.Name
	for _, k := range openai.Kinds {
		held := e.Holds(k)
		row.Kinds = append(row.Kinds, kindRow{Kind: k, Declared: &held})
	}
	return row
}

func describeServer(ctx context.Context, spec agents.ModelSpec, probe bool, row *modelRow) {
	cfg := serverConfig(spec)
	row.Engine, row.Server = spec.Server, openai.ServerIdentity(spec.URL)
	var err error
	if probe {
		cfg.Key, err = serverKey(spec)
	}
	var m *openai.Model
	if err == nil {
		m, err = openai.New(cfg)
	}
	if err != nil {
		row.Error = fmt.Sprintf("model %s: %v", modelName(spec), err)
		return
	}
	defer m.Close()
	row.Engine = m.Capabilities().Engine.Name
	states := m.States()
	if probe && spec.ServerCommand != nil {
		started, err := withServer(m, spec)
		if err == nil {
			defer started.Close()
			err = started.(*served).Ready(ctx)
		}
		if err != nil {
			row.Error = err.Error()
			probe = false
		}
	}
	if probe {
		if states, err = m.Probe(ctx, true); err != nil {
			row.Error = err.Error()
		}
	}
	for _, s := range states {
		k := kindRow{Kind: s.Kind, Declared: s.Declared, Travels: s.Travels}
		if s.Travels == "" {
			no := false
			k.Declared = &no
		}
		if p := s.Probe; p != nil {
			k.Probed, k.Detail, k.Seen, k.Version = &p.Held, p.Detail, &p.Seen, p.Version
		}
		row.Kinds = append(row.Kinds, k)
	}
}

func (a *app) modelTable(rows []modelRow) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tENGINE\tKIND\tDECLARED\tPROBED\tLAST SEEN")
	for _, r := range rows {
		for _, k := range r.Kinds {
			seen := "–"
			if k.Seen != nil {
				seen = k.Seen.Local().Format("2006-01-02 15:04")
			}
			probed := word(k.Probed)
			if k.Detail != "" {
				probed += " (" + k.Detail + ")"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", agents.Printable(r.Name), r.Engine, k.Kind, word(k.Declared), agents.Printable(probed), seen)
		}
	}
	return w.Flush()
}

// word is how people read what may not be known.
func word(b *bool) string {
	switch {
	case b == nil:
		return "–"
	case *b:
		return "yes"
	}
	return "no"
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentgraph/agents"
	"agentgraph/constraint"
	"agentgraph/internal/loopback"
	"agentgraph/model"
	"agentgraph/model/openai"
)

// maxKeyBytes bounds a file that holds a key.
const maxKeyBytes = 64 << 10

// openServer makes a model of a server, which may be down.
func openServer(spec agents.ModelSpec) (model.Model, error) {
	cfg := serverConfig(spec)
	var err error
	if cfg.Key, err = serverKey(spec); err != nil {
		return nil, unavailable(spec, err)
	}
	m, err := openai.Open(context.Background(), cfg)
	if err != nil {
		return nil, unavailable(spec, err)
	}
	return m, nil
}

// serverConfig is what the settings say of a server, without its key.
func serverConfig(spec agents.ModelSpec) openai.Config {
	cfg := openai.Config{
		Dialect: spec.Server, URL: spec.URL, Model: spec.Model, Alias: settingsName(spec),
		TLSCA: spec.TLSCA, Proxy: spec.Proxy, Context: spec.Context, Parallel: spec.Parallel,
		LLGuidance: spec.Backend == "llguidance", ProbeCache: filepath.Join(cacheDir(), "probes"),
		Declared: kindsOf(spec.Constraints),
	}
	if name := settingsName(spec); name != "" {
		cfg.Where = fmt.Sprintf("models: %s in %s", name, agents.GraphFile)
	}
	return cfg
}

// serverKey reads the key of a server. Errors name where it should be and
// never what is there.
func serverKey(spec agents.ModelSpec) (openai.Secret, error) {
	var none openai.Secret
	switch k := spec.Key; {
	case k == nil:
		return none, nil
	case k.Env != nil && *k.Env != "":
		v := strings.TrimSpace(os.Getenv(*k.Env))
		if v == "" {
			return none, fmt.Errorf("the environment variable %s is not set; put the server's key into it, or change key:", *k.Env)
		}
		return checkKey(v, *k.Env)
	case k.File != nil && *k.File != "":
		f, err := os.Open(*k.File)
		if err != nil {
			return none, fmt.Errorf("the file of key: cannot be read: %w; correct the path, or let this user read it", err)
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
		if err != nil {
			return none, fmt.Errorf("the file of key: cannot be read: %w", err)
		}
		if len(b) > maxKeyBytes {
			return none, errors.New("the file of key: is too long to hold a key; name another one")
		}
		v := strings.TrimSpace(string(b))
		if v == "" {
			return none, fmt.Errorf("the file %s is empty; put the server's key into it", *k.File)
		}
		return checkKey(v, *k.File)
	}
	return none, nil
}

// checkKey keeps out what no header can carry.
func checkKey(v, where string) (openai.Secret, error) {
	for _, r := range v {
		if r < 0x20 || r > 0x7e {
			return openai.Secret{}, fmt.Errorf("%s holds more than a key, or another kind of file; put the key there and nothing else", where)
		}
	}
	return openai.NewSecret(v), nil
}

// checkServer finds what would keep a server from being asked, without a word
// to it.
func checkServer(spec agents.ModelSpec) error {
	cfg := serverConfig(spec)
	var err error
	if cfg.Key, err = serverKey(spec); err != nil {
		return err
	}
	m, err := openai.New(cfg)
	if err != nil {
		return err
	}
	return m.Close()
}

// serverEngine is what a server is believed to hold, as far as that is known
// without asking it.
func serverEngine(spec agents.ModelSpec) constraint.Engine {
	cfg := serverConfig(spec)
	if m, err := openai.New(cfg); err == nil {
		defer m.Close()
		return m.Capabilities().Engine
	}
	return constraint.Engine{Name: spec.Server, Declared: constraint.DeclaredServer, Where: cfg.Where}
}

// checkTravel finds what a server cannot be asked to hold, where the kind as a
// whole travels.
func checkTravel(spec constraint.Spec, opt constraint.Options, m agents.ModelSpec) []agents.Finding {
	if m.Server == "" || !serverEngine(m).Holds(spec.Kind) {
		return nil
	}
	c, err := constraint.Compile(spec, opt)
	if err != nil {
		return nil // found already
	}
	if _, err := c.Admit(serverEngine(m)); err != nil {
		return nil
	}
	if err := openai.Check(m.Server, m.Backend == "llguidance", c); err != nil {
		return []agents.Finding{refusalFinding(err, spec.File)}
	}
	return nil
}

// plainKey warns of a key that travels to another machine unencrypted.
func plainKey(spec agents.ModelSpec, at agents.Finding) []agents.Finding {
	u, err := openai.CheckURL(spec.URL)
	if err != nil || spec.Key == nil || u.Scheme != "http" {
		return nil
	}
	if loopback.Host(u.Hostname()) {
		return nil
	}
	at.Severity = agents.SeverityWarning
	at.Msg = "the key of model " + modelName(spec) + " travels to " + u.Host + " unencrypted"
	at.Hint = "write https:// in url:, or reach the server through a tunnel"
	return []agents.Finding{at}
}

// reachTime bounds the question whether a server is there.
const reachTime = 5 * time.Second

// reachServer finds out whether a server that nobody here starts is there.
func reachServer(ctx context.Context, spec agents.ModelSpec) error {
	if spec.Server == "" || spec.ServerCommand != nil {
		return nil
	}
	cfg := serverConfig(spec)
	var err error
	if cfg.Key, err = serverKey(spec); err != nil {
		return nil // found already
	}
	m, err := openai.New(cfg)
	if err != nil {
		return nil
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	return m.Reach(ctx)
}

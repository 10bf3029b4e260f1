package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"agentgraph/constraint"
)

// maxCacheBytes bounds a file of the cache.
const maxCacheBytes = 64 << 10

// probeCache is one file for each server and model. It is a convenience: what
// cannot be read or written is probed again.
type probeCache struct {
	path string
	head cacheFile
}

// cacheFile is what the file holds. The names are there for people.
type cacheFile struct {
	Server  string                    `json:"server"`
	Dialect string                    `json:"dialect"`
	Model   string                    `json:"model"`
	Version string                    `json:"version,omitempty"`
	Probes  map[constraint.Kind]Probe `json:"probes"`
}

func newProbeCache(m *Model) *probeCache {
	c := &probeCache{head: cacheFile{Server: m.id.Server, Dialect: m.dialect.name, Model: m.id.Name}}
	if m.cfg.ProbeCache != "" {
		sum := sha256.Sum256([]byte(c.head.Server + "\x00" + c.head.Dialect + "\x00" + c.head.Model))
		c.path = filepath.Join(m.cfg.ProbeCache, hex.EncodeToString(sum[:16])+".json")
	}
	return c
}

func (c *probeCache) load(now time.Time) map[constraint.Kind]Probe {
	known := map[constraint.Kind]Probe{}
	if c.path == "" {
		return known
	}
	f, err := os.Open(c.path)
	if err != nil {
		return known
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCacheBytes))
	var file cacheFile
	if err != nil || json.Unmarshal(b, &file) != nil || file.Server != c.head.Server || file.Model != c.head.Model {
		return known
	}
	for _, k := range Kinds {
		if got, ok := file.Probes[k]; ok && now.Sub(got.Seen) < probeLife {
			known[k] = got
		}
	}
	return known
}

func (c *probeCache) save(version string, known map[constraint.Kind]Probe) {
	if c.path == "" {
		return
	}
	file := c.head
	file.Version, file.Probes = version, known
	b, err := json.MarshalIndent(file, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o700) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), ".probe-*.tmp")
	if err != nil {
		return
	}
	_, err = tmp.Write(append(b, '\n'))
	if cerr := tmp.Close(); err != nil || cerr != nil || os.Rename(tmp.Name(), c.path) != nil {
		_ = os.Remove(tmp.Name())
	}
}

package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/turn"
)

// makePast gives an agent n inputs with answers and records, as n turns would
// have left them, but without waiting for the disk.
func makePast(dir, agent string, n int) error {
	if n == 0 {
		return nil
	}
	m, err := newInstant()
	if err != nil {
		return err
	}
	rec := turn.Run(context.Background(), &turn.Request{
		Agent: agent, TurnID: "past", TraceID: "past", SessionID: agent, System: []string{"You answer."},
		User: "Question?", Model: model.Model(m.m),
	})
	text, ok := rec.Answer()
	if !ok {
		return errors.New("the instant model does not answer")
	}
	base := filepath.Join(dir, "agents", agent)
	if err := os.MkdirAll(filepath.Join(base, "turns"), 0o777); err != nil {
		return err
	}
	when := time.Now().Add(-time.Hour)
	for i := range n {
		id := fmt.Sprintf("past-%s-%08d", agent, i)
		in := pastFile{"input", fmt.Sprintf("past-%08d.txt", i), fmt.Sprintf("Old question %d?", i)}
		out := pastFile{"output", fmt.Sprintf("out-%d.txt", when.UnixMilli()-int64(n-i)), text}
		r := *rec
		r.TurnID, r.TraceID = &id, &id
		r.Inputs, r.Outputs = []record.FileRef{in.ref(agent)}, []record.FileRef{out.ref(agent)}
		b, err := record.MarshalIndent(&r)
		if err != nil {
			return err
		}
		for _, f := range []pastFile{in, out, {"turns", id + ".json", string(b)}} {
			path := filepath.Join(base, f.dir, f.name)
			if err := os.WriteFile(path, []byte(f.text), 0o666); err != nil {
				return err
			}
			if f.dir == "input" {
				if err := os.Chtimes(path, when, when); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

type pastFile struct{ dir, name, text string }

func (f pastFile) ref(agent string) record.FileRef {
	sum := sha256.Sum256([]byte(f.text))
	return record.FileRef{Path: "agents/" + agent + "/" + f.dir + "/" + f.name, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(f.text))}
}

// idleFor is how long the idle runner's processor time is measured, settleFor
// how long it is waited for at most: a runner that is ready for new inputs
// still reads old ones that changed just before it last saw them.
const (
	idleFor   = 5 * time.Second
	settleFor = time.Minute
)

// settled waits until the process used less than 5% of a core for a second.
func settled(ctx context.Context) {
	for end := time.Now().Add(settleFor); time.Now().Before(end); {
		before := cpuTime()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		if cpuTime()-before < 50*time.Millisecond {
			return
		}
	}
}

func startUp(ctx context.Context, dir string, n, answers int) (*StartUp, error) {
	names, err := makeGraph(dir, n, "")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := makePast(dir, name, answers); err != nil {
			return nil, err
		}
	}
	s := &StartUp{Agents: n, Answers: answers}
	for _, seconds := range []*float64{&s.RebuildSeconds, &s.ReadySeconds} {
		runtime.GC()
		began := time.Now()
		g, err := start(ctx, dir)
		if err != nil {
			return nil, err
		}
		err = g.waitReady(ctx)
		*seconds = time.Since(began).Seconds()
		if err == nil && seconds == &s.ReadySeconds {
			s.MemoryMB = residentMB()
			settled(ctx)
			s.SettledSeconds = time.Since(began).Seconds()
			before := cpuTime()
			select {
			case <-ctx.Done():
			case <-time.After(idleFor):
			}
			s.IdleCPUPercent = 100 * (cpuTime() - before).Seconds() / idleFor.Seconds()
		}
		g.mu.Lock()
		repeated := len(g.started)
		g.mu.Unlock()
		if err = errors.Join(err, g.stop()); err != nil {
			return nil, err
		}
		if repeated > 0 {
			return nil, fmt.Errorf("%d turns that have a record were done again", repeated)
		}
	}
	return s, nil
}

// residentMB is the memory of this process that is in use, 0 where the system
// does not say.
func residentMB() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

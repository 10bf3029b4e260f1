package cli

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentgraph/agents"
	"agentgraph/model"
)

// sleeper counts how often a model is opened and closed.
type sleeper struct {
	mu             sync.Mutex
	opened, closed int
	took           time.Duration // of a call
	broken         error
}

type sleeping struct {
	model.Model
	s *sleeper
}

func (m sleeping) Capabilities() model.Capabilities { return model.Capabilities{Parallel: 4} }
func (m sleeping) Identity() model.Identity         { return model.Identity{Name: "sleeper"} }

func (m sleeping) Generate(context.Context, *model.Request) (*model.Response, error) {
	time.Sleep(m.s.took)
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.s.closed == m.s.opened {
		return nil, errors.New("used after it was closed")
	}
	return &model.Response{Text: "x"}, nil
}

func (m sleeping) Close() error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.closed++
	return nil
}

func (s *sleeper) open() (model.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	s.opened++
	return sleeping{s: s}, nil
}

func (s *sleeper) counts() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.closed
}

func TestIdleUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sleeper{took: 3 * time.Second}
		after := agents.Duration(10 * time.Second)
		m, err := withIdleUnload(agents.ModelSpec{IdleUnload: &after}, s.open)
		if err != nil {
			t.Fatal(err)
		}
		want := func(opened, closed int) {
			t.Helper()
			synctest.Wait()
			if o, c := s.counts(); o != opened || c != closed {
				t.Errorf("opened %d and closed %d times, want %d and %d", o, c, opened, closed)
			}
		}
		call := func() {
			t.Helper()
			if _, err := m.Generate(t.Context(), &model.Request{}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(9 * time.Second)
		call() // in time: it stays
		time.Sleep(9 * time.Second)
		want(1, 0)
		time.Sleep(2 * time.Second)
		want(1, 1)
		if m.Capabilities().Parallel != 4 {
			t.Error("its capabilities are forgotten")
		}
		// Two at once load it once, and the longer call keeps it.
		done := make(chan struct{}, 2)
		for range 2 {
			go func() { call(); done <- struct{}{} }()
		}
		<-done
		<-done
		want(2, 1)
		s.took = 30 * time.Second
		call()
		want(2, 1)
		time.Sleep(11 * time.Second)
		want(2, 2)

		s.broken = errors.New("gone")
		if _, err := m.Generate(t.Context(), &model.Request{}); !errors.Is(err, s.broken) {
			t.Errorf("error is %v", err)
		}
		s.broken = nil
		s.took = 0
		call()
		want(3, 2)
		if id := m.Identity(); id.Name != "sleeper" {
			t.Errorf("identity is %+v", id)
		}
		m.Close()
		m.Close()
		want(3, 3)
		if _, err := m.Generate(t.Context(), &model.Request{}); err == nil {
			t.Error("a closed model answers")
		}
		time.Sleep(time.Minute)
		want(3, 3)
	})
}

func TestWithoutIdleUnload(t *testing.T) {
	s := &sleeper{}
	m, err := withIdleUnload(agents.ModelSpec{}, s.open)
	if _, wrapped := m.(*idle); err != nil || wrapped {
		t.Errorf("%T, %v", m, err)
	}
}

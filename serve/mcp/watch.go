package mcp

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/agents"
	"agentgraph/serve"
)

// resources keeps the list of resources and the subscriptions to them. Who
// works the graph may be another process, so the folders are looked at, by
// their times; only where those changed they are read.
type resources struct {
	mu      sync.Mutex
	folders map[string]*folderState                // by agent
	subs    map[string]map[*sdk.ServerSession]bool // by URI
	marks   map[string]string                      // of subscribed files
	agents  string                                 // times of the agents' folder
	checked time.Time                              // when the agents were listed
	known   []serve.Folders
}

// folderState is what was seen of one agent.
type folderState struct {
	mark   string
	young  bool // a change within the clock's grain may be unseen
	listed map[string]bool
	latest string // the turns of the list
}

const (
	watchEvery = time.Second
	// grain is how long after a change of a folder another one may leave its
	// time the same.
	grain = 2 * time.Second
	// relist bounds how long a change of settings alone goes unseen.
	relist = 30 * time.Second
	// maxSubscriptions bounds what all clients together subscribe to.
	maxSubscriptions = 4096
)

// watch keeps resources up to date until stop is called.
func (s *Server) watch(ctx context.Context) (stop func()) {
	if s.svc.Root() == "" {
		return func() {}
	}
	s.refresh(ctx)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if s.connected() {
				s.refresh(ctx)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (s *Server) connected() bool {
	for range s.sdk.Sessions() {
		return true
	}
	return false
}

// refreshed makes a list of resources show what is there now.
func (s *Server) refreshed(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "resources/list" {
			s.refresh(ctx)
		}
		return next(ctx, method, req)
	}
}

// refresh looks at the folders once and tells clients what changed.
func (s *Server) refresh(ctx context.Context) {
	s.mu.Lock()
	changed := s.look(time.Now())
	s.mu.Unlock()
	for _, uri := range changed {
		// It reaches who subscribed to it, and fails for none.
		_ = s.sdk.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
	}
}

// look brings the list up to date and returns the resources that changed.
// Called with mu held.
func (s *Server) look(now time.Time) (changed []string) {
	s.listAgents(now)
	seen := map[string]bool{}
	for _, f := range s.known {
		seen[f.Agent] = true
		st := s.folders[f.Agent]
		if st == nil {
			st = &folderState{listed: map[string]bool{}}
			s.folders[f.Agent] = st
			s.list(answersURI(f.Agent), f.Agent+"/answers", "the latest answers of "+f.Agent, "application/json", nil)
		}
		mark, young := markOf(now, f.Turns, f.Output)
		if mark == st.mark && !st.young {
			continue
		}
		st.mark, st.young = mark, young
		if s.listAnswers(f.Agent, st) {
			changed = append(changed, answersURI(f.Agent))
		}
	}
	for name, st := range s.folders {
		if !seen[name] {
			s.sdk.RemoveResources(append(slices.Collect(maps.Keys(st.listed)), answersURI(name))...)
			delete(s.folders, name)
		}
	}
	return append(changed, s.changedFiles()...)
}

// listAgents reads which agents there are, when that may have changed.
func (s *Server) listAgents(now time.Time) {
	mark, young := markOf(now, filepath.Join(s.svc.Root(), agents.AgentsDir))
	if mark == s.agents && !young && now.Sub(s.checked) < relist {
		return
	}
	list, err := s.svc.Folders()
	if err != nil {
		return // what was known stays until the graph can be read again
	}
	s.agents, s.checked, s.known = mark, now, list
}

// listAnswers brings the resources of one agent up to date and reports
// whether its list of answers changed.
func (s *Server) listAnswers(agent string, st *folderState) bool {
	list, err := s.svc.Answers(agent, listedAnswers, "")
	if err != nil {
		return false
	}
	now := map[string]bool{}
	var turns strings.Builder
	for _, a := range list {
		uri, rec := answerURI(agent, a.File), recordURI(agent, a.Turn)
		now[uri], now[rec] = true, true
		turns.WriteString(a.Turn + "\n")
		if !st.listed[uri] {
			name := filepath.Base(a.File)
			s.list(uri, agent+"/"+name, "answer of "+agent+" to "+agents.Printable(strings.Join(a.Inputs, ", ")), mimeOf(name), &a)
		}
		if !st.listed[rec] {
			s.list(rec, agent+"/"+a.Turn, "record of the turn that made "+agents.Printable(a.File), "application/json", &a)
		}
	}
	var gone []string
	for uri := range st.listed {
		if !now[uri] {
			gone = append(gone, uri)
		}
	}
	if len(gone) > 0 {
		s.sdk.RemoveResources(gone...)
	}
	changed := st.latest != turns.String()
	st.listed, st.latest = now, turns.String()
	return changed
}

func (s *Server) list(uri, name, description, mime string, a *serve.Answer) {
	r := &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: mime}
	if a != nil {
		r.Annotations = &sdk.Annotations{LastModified: a.Finished.UTC().Format(time.RFC3339)}
	}
	s.sdk.AddResource(r, s.read)
}

// changedFiles are the subscribed answers and records that are not what they
// were.
func (s *Server) changedFiles() (changed []string) {
	s.dropEnded()
	for uri := range s.subs {
		at, _ := parseURI(uri)
		if at.kind == "answers" {
			continue
		}
		if mark := s.fileMark(at); mark != s.marks[uri] {
			s.marks[uri] = mark
			changed = append(changed, uri)
		}
	}
	return changed
}

// fileMark changes when the file behind a resource does.
func (s *Server) fileMark(at address) string {
	i := slices.IndexFunc(s.known, func(f serve.Folders) bool { return f.Agent == at.agent })
	if i < 0 {
		return ""
	}
	file := filepath.Join(s.known[i].Output, at.name)
	if at.kind == "turns" {
		file = filepath.Join(s.known[i].Turns, at.name+".json")
	}
	info, err := os.Lstat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
}

// markOf is the times of folders, and whether one is so young that a change
// may have left it the same.
func markOf(now time.Time, dirs ...string) (mark string, young bool) {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			mark += "-"
			continue
		}
		t := info.ModTime()
		mark += fmt.Sprint(t.UnixNano(), " ")
		young = young || now.Sub(t) < grain
	}
	return mark, young
}

// dropEnded forgets the subscriptions of clients that are gone.
func (s *Server) dropEnded() {
	if len(s.subs) == 0 {
		return
	}
	here := map[*sdk.ServerSession]bool{}
	for session := range s.sdk.Sessions() {
		here[session] = true
	}
	for uri, sessions := range s.subs {
		maps.DeleteFunc(sessions, func(x *sdk.ServerSession, _ bool) bool { return !here[x] })
		if len(sessions) == 0 {
			delete(s.subs, uri)
			delete(s.marks, uri)
		}
	}
}

func (s *Server) subscribe(_ context.Context, req *sdk.SubscribeRequest) error {
	uri := req.Params.URI
	at, ok := parseURI(uri)
	if !ok || s.svc.Root() == "" || !s.svc.HasAgent(at.agent) {
		return sdk.ResourceNotFoundError(uri)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subs[uri] == nil {
		if len(s.subs) >= maxSubscriptions {
			return fmt.Errorf("there are %d subscriptions already; end some", maxSubscriptions)
		}
		s.subs[uri] = map[*sdk.ServerSession]bool{}
		s.marks[uri] = s.fileMark(at)
	}
	s.subs[uri][req.Session] = true
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs[req.Params.URI], req.Session)
	return nil
}

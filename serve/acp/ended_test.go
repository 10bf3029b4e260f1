package acp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/model"
	"agentgraph/serve"
	"agentgraph/tools"
)

// A server that ends with its session leaves nobody waiting who came too late:
// a set-up that another one overtook, or a prompt.
func TestEndedServer(t *testing.T) {
	m := &clientServer{name: "gone", cfg: tools.Config{MCP: &tools.Server{Name: "gone", Command: []string{"no-such-program-here"}}}}
	m.start(func(error) {})
	m.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got := make(chan []serverStatus, 1)
	go func() { got <- new(server).connected(ctx, []*clientServer{m}) }()
	select {
	case list := <-got:
		if len(list) != 1 || list[0].Error == "" {
			t.Errorf("it came to %+v", list)
		}
	case <-ctx.Done():
		t.Fatal("the set-up still waits")
	}
	if _, _, err := m.offers(ctx, tools.Ask); !errors.Is(err, errEnded) {
		t.Errorf("a prompt is told %v", err)
	}
}

// none has no models.
type none struct{}

func (none) Model(ctx context.Context, _ string) (model.Model, error) {
	return nil, errors.Join(errors.New("there is no model"), ctx.Err())
}

// A prompt whose session, or connection, is closed before its turn begins is
// cancelled: the client asked in that order. One that comes later finds no
// session.
func TestClosedBeforeItBegan(t *testing.T) {
	svc, err := serve.New(serve.Config{Models: none{}, StateDir: t.TempDir(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	s := &server{cfg: Config{Service: svc}, in: newLines(strings.NewReader(""), new(output), func(error) {}), sessions: map[acp.SessionId]*session{}}
	sess, err := s.open("one")
	if err != nil {
		t.Fatal(err)
	}
	prompt := func(ctx context.Context, params []byte) (acp.PromptResponse, error) {
		return s.prompt(ctx, acp.PromptRequest{SessionId: "one", Prompt: []acp.ContentBlock{acp.TextBlock("hello")}}, params)
	}
	params := []byte(`{"sessionId":"one","prompt":[{"type":"text","text":"hello"}]}`)
	for what, end := range map[string]func(){
		"connection": func() { s.closed = true },
		"session":    func() { s.drop(sess) },
	} {
		s.closed, s.sessions[sess.id] = false, sess
		before, done := s.register(t.Context(), params)
		defer done()
		end()
		if what == "connection" {
			sess.cancel() // as Serve does
		}
		after, done := s.register(t.Context(), params)
		defer done()
		if got, err := prompt(before, params); err != nil || got.StopReason != acp.StopReasonCancelled {
			t.Errorf("%s closed: %+v, %v", what, got, err)
		}
		got, err := prompt(after, params)
		var gone *acp.RequestError
		if what == "connection" && (err != nil || got.StopReason != acp.StopReasonCancelled) ||
			what == "session" && (!errors.As(err, &gone) || gone.Code != resourceNotFound) {
			t.Errorf("%s closed before: %+v, %v", what, got, err)
		}
	}
}

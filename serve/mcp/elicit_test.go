package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/record"
)

// The two ways in which a client is asked: while its call runs, and between two
// of them.
var ways = []string{"2025-11-25", "2026-07-28"}

// asked is a client that shows forms; answer fills them in.
func asked(t *testing.T, s *Server, version string, answer func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error)) *client {
	return connectAs(t, s, version, sdk.ClientOptions{
		ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return answer(ctx, r.Params)
		},
	})
}

// A client that can ask its user is asked about each call of a tool.
func TestElicitation(t *testing.T) {
	s, svc := lookingServer(t)
	for _, tt := range []struct {
		name string
		res  sdk.ElicitResult
		runs bool
	}{
		{"allowed", sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}, true},
		{"not allowed", sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": false}}, false},
		{"declined", sdk.ElicitResult{Action: "decline"}, false},
		{"declined with an answer", sdk.ElicitResult{Action: "decline", Content: map[string]any{"allow": true}}, false},
		{"cancelled", sdk.ElicitResult{Action: "cancel"}, false},
		{"an answer that is none", sdk.ElicitResult{Action: "accept"}, false},
	} {
		for _, version := range ways {
			t.Run(tt.name+", "+version, func(t *testing.T) {
				var shown *sdk.ElicitParams
				c := asked(t, s, version, func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
					shown = p
					return &tt.res, nil
				})
				r := c.call(within(t), "respond", `{"prompt":"look"}`)
				if r.failed == tt.runs || !tt.runs && r.task.Outcome.Status != record.PolicyDenied || tt.runs && r.text != "I looked" {
					t.Errorf("failed %v: %s", r.failed, r.text)
				}
				has(t, shown.Message, "list_folder", `{"path":"."}`)
				b, err := json.Marshal(shown.RequestedSchema)
				must(t, err)
				has(t, string(b), `"allow":{`, `"type":"boolean"`)
				if list, err := svc.Waiting(); err != nil || len(list) != 0 {
					t.Errorf("still waiting: %+v, %v", list, err)
				}
				if len(s.rounds.calls) != 0 || s.rounds.begun != 0 {
					t.Errorf("%d calls are kept, %d places taken", len(s.rounds.calls), s.rounds.begun)
				}
			})
		}
	}
}

// The form and the tool approve are two ways to one decision.
func TestElicitationOrApprove(t *testing.T) {
	s, _ := lookingServer(t)
	for name, answer := range map[string]func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error){
		"the form is left open": func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			<-ctx.Done() // approve takes it back
			return nil, ctx.Err()
		},
		"there is no form after all": func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			return nil, errors.New("not today")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := asked(t, s, ways[0], answer)
			ctx := within(t)
			answered := c.later(ctx, "respond", `{"prompt":"look"}`)
			c.call(ctx, "approve", `{"id":"`+c.waiting(ctx).ID+`"}`)
			has(t, (<-answered).text, "I looked")
		})
	}
}

// Waiting for an answer counts against the turn's time.
func TestElicitationInTime(t *testing.T) {
	s, svc := lookingServer(t)
	write(t, svc.Root(), "agentgraph.yaml", "models:\n  fake: {script: tools.yaml}\ndefaults: {model: fake, timeout: 3s, tools: [{tool: list_folder, policy: ask}]}\n")
	given := make(chan struct{})
	c := asked(t, s, ways[0], func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		<-ctx.Done()
		close(given)
		return nil, ctx.Err()
	})
	r := c.call(within(t), "respond", `{"prompt":"look"}`)
	if !r.failed || r.task.Outcome.Status != record.TimedOut {
		t.Errorf("%s", r.text)
	}
	select { // the client takes the form away
	case <-given:
	case <-time.After(time.Minute):
		t.Error("the question was not taken back")
	}
}

// Clients may ask about so many calls at once; those of others wait for approve.
func TestRoundsAreBounded(t *testing.T) {
	s, svc := lookingServer(t)
	asks := make(chan chan *sdk.ElicitResult)
	c := asked(t, s, ways[1], func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		answer := make(chan *sdk.ElicitResult)
		asks <- answer
		return <-answer, nil
	})
	ctx := within(t)
	var answered []<-chan result
	var forms []chan *sdk.ElicitResult
	for range maxRounds {
		answered = append(answered, c.later(ctx, "respond", `{"prompt":"look"}`))
		select {
		case form := <-asks:
			forms = append(forms, form)
		case <-ctx.Done():
			t.Fatal("a client is not asked")
		}
	}
	last := c.later(ctx, "respond", `{"prompt":"look"}`)
	for {
		list, err := svc.Waiting()
		must(t, err)
		if ctx.Err() != nil {
			t.Fatalf("%d calls wait", len(list))
		}
		if len(list) == maxRounds+1 {
			must(t, svc.Decide(list[maxRounds].ID, true))
			break
		}
	}
	select {
	case r := <-last:
		has(t, r.text, "I looked")
	case <-asks:
		t.Fatal("one client too many is asked")
	}
	for i, form := range forms {
		form <- &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}
		has(t, (<-answered[i]).text, "I looked")
	}
	r := c.later(ctx, "respond", `{"prompt":"look"}`)
	(<-asks) <- &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}
	has(t, (<-r).text, "I looked")
}

func TestQuestionIsBounded(t *testing.T) {
	s, svc := lookingServer(t)
	long := strings.Repeat("x", 20<<10)
	write(t, svc.Root(), "tools.yaml", "constraints: none\ntools: true\nreplies:\n  - {match: look, tool_calls: [{name: list_folder, arguments: {path: "+long+"}}]}\n  - {tool_result: '', text: I looked}\n")
	c := asked(t, s, ways[0], func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		if len(p.Message) > 5<<10 || !strings.HasSuffix(p.Message, "…") {
			t.Errorf("the question has %d bytes", len(p.Message))
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}, nil
	})
	has(t, c.call(within(t), "respond", `{"prompt":"look"}`).text, "I looked")
}

// A client that is asked between two calls may have lost the first word: what
// approve decided meanwhile stands, and a state is good once.
func TestRounds(t *testing.T) {
	s, svc := lookingServer(t)
	write(t, svc.Root(), "tools.yaml", "constraints: none\ntools: true\nreplies:\n  - {match: look, times: 1, tool_calls: [{name: list_folder, arguments: {path: .}}]}\n  - {tool_result: agents, times: 1, tool_calls: [{name: list_folder, arguments: {path: agents}}]}\n  - {tool_result: greeter, text: I looked twice}\n")
	c := connectAs(t, s, ways[1], sdk.ClientOptions{
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, errors.New("nobody asks so")
		},
	})
	ctx := within(t)
	params := &sdk.CallToolParams{Name: "respond", Arguments: json.RawMessage(`{"prompt":"look"}`)}
	first, err := c.CallTool(ctx, params)
	must(t, err)
	if !first.NeedsInput() || first.RequestState == "" || len(first.InputRequests) != 1 {
		t.Fatalf("%+v", first)
	}
	list, err := svc.Waiting()
	must(t, err)
	must(t, svc.Decide(list[0].ID, true))
	params.RequestState = first.RequestState
	params.InputResponses = sdk.InputResponseMap{"allow-1": &sdk.ElicitResult{Action: "decline"}}
	second, err := c.CallTool(ctx, params)
	must(t, err)
	q, _ := second.InputRequests["allow-2"].(*sdk.ElicitParams)
	if !second.NeedsInput() || q == nil || second.RequestState == first.RequestState {
		t.Fatalf("%+v", second)
	}
	has(t, q.Message, `"agents"`)
	again, err := c.CallTool(ctx, params)
	must(t, err)
	if r := takeApart(t, again); !r.failed || r.task.Error.Code != record.ArgumentsInvalid {
		t.Errorf("%+v", r)
	}
	params.RequestState = second.RequestState
	params.InputResponses = sdk.InputResponseMap{"allow-2": &sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}}
	third, err := c.CallTool(ctx, params)
	must(t, err)
	if r := takeApart(t, third); r.failed || r.text != "I looked twice" || len(r.task.ToolCalls) != 2 {
		t.Errorf("%+v", r)
	}
}

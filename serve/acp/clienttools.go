package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/model"
	"agentgraph/tools"
)

// moreTools are the tools of the session's own servers. A server that cannot be
// had is told to the client as a call that failed, and stands in the record as
// a tool that the model had to do without: neither is lost, and the other
// servers and the prompt go on.
func (t *turnOf) moreTools(ctx context.Context, policy tools.Policy, taken func(string) bool) []*tools.Offer {
	t.server.mu.Lock()
	servers := t.session.servers
	t.server.mu.Unlock()
	var all []*tools.Offer
	t.from = map[string]string{}
	offered := 0
	for _, m := range servers {
		offers, news, err := m.offers(ctx, policy)
		if err != nil {
			why := fmt.Errorf("the client's MCP server cannot be used: %w", err)
			all = append(all, &tools.Offer{Tool: absent(m.name), Unfit: why})
			if news {
				t.tell(m.name, err)
			}
			continue
		}
		for _, o := range offers {
			if o.Unfit == nil {
				if offered++; offered > maxClientTools {
					unfit := *o
					unfit.Unfit = fmt.Errorf("a session has at most %d tools of the client's MCP servers", maxClientTools)
					o = &unfit
				} else {
					name := freeName(o.Name(), m.name, func(name string) bool { return taken(name) || t.from[name] != "" })
					t.from[name] = m.name
					o = o.Called(name)
				}
			}
			all = append(all, o)
		}
	}
	return all
}

// tell shows the client that a server cannot be used.
func (t *turnOf) tell(server string, err error) {
	t.updates.event(acp.StartToolCall(t.session.nextCall(), "MCP server "+server+": cannot be used",
		acp.WithStartKind(acp.ToolKindOther), acp.WithStartStatus(acp.ToolCallStatusFailed),
		acp.WithStartContent([]acp.ToolCallContent{acp.ToolContent(acp.TextBlock(err.Error()))})))
}

// freeName is the name under which a tool of a client's server is offered: its
// own, or where that is taken "server_tool", or that with a number. Names of
// the settings' tools are always taken first, then those of earlier servers.
func freeName(tool, server string, taken func(string) bool) string {
	if !taken(tool) {
		return tool
	}
	prefix := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, server)
	for n := 1; ; n++ {
		end := "_" + tool
		if n > 1 {
			end = fmt.Sprintf("_%s_%d", tool, n)
		}
		if len(end) > maxToolName {
			end = end[len(end)-maxToolName:]
		}
		if name := prefix[:min(len(prefix), maxToolName-len(end))] + end; !taken(name) {
			return name
		}
	}
}

// maxToolName is the longest name that a call can carry.
const maxToolName = 64

// absent stands for a server whose tools are not known.
type absent string

func (a absent) Spec() model.Tool {
	return model.Tool{Name: string(a), Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (a absent) Call(context.Context, tools.Call) (tools.Output, error) {
	return tools.Output{}, errors.New("it is not there")
}

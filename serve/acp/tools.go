package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/tools"
)

// The client's choices about a tool that asks.
const (
	allowOnce   acp.PermissionOptionId = "allow_once"
	allowAlways acp.PermissionOptionId = "allow_always"
	rejectOnce  acp.PermissionOptionId = "reject_once"
)

var permissionOptions = []acp.PermissionOption{
	{OptionId: allowOnce, Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
	{OptionId: allowAlways, Name: "Allow in this session", Kind: acp.PermissionOptionKindAllowAlways},
	{OptionId: rejectOnce, Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
}

// Approve shows the client the call and asks it.
func (t *turnOf) Approve(ctx context.Context, q tools.Question) (bool, error) {
	t.asked = t.session.nextCall()
	title, kind := t.title(q.Tool, q.Arguments), toolKind(q.Tool)
	t.updates.event(acp.StartToolCall(t.asked, title, acp.WithStartKind(kind),
		acp.WithStartStatus(acp.ToolCallStatusPending), acp.WithStartRawInput(q.Arguments)))
	if err := t.updates.flush(ctx); err != nil {
		return false, err
	}
	key := q.Agent + "/" + t.from[q.Tool] + "/" + q.Tool
	t.session.mu.Lock()
	always := t.session.always[key]
	t.session.mu.Unlock()
	if always {
		return t.allowed(), nil
	}
	status := acp.ToolCallStatusPending
	req := acp.RequestPermissionRequest{SessionId: t.session.id, Options: permissionOptions, ToolCall: acp.ToolCallUpdate{
		ToolCallId: t.asked, Title: &title, Kind: &kind, Status: &status, RawInput: q.Arguments,
	}}
	if ours := t.meta(0); ours != nil {
		req.Meta = map[string]any{MetaKey: ours}
	}
	resp, err := acp.SendRequest[acp.RequestPermissionResponse](t.server.conn, ctx, acp.ClientMethodSessionRequestPermission, req)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, err
	case resp.Outcome.Selected == nil:
		return false, errors.New("the client cancelled")
	}
	switch resp.Outcome.Selected.OptionId {
	case allowAlways:
		t.session.mu.Lock()
		t.session.always[key] = true
		t.session.mu.Unlock()
		return t.allowed(), nil
	case allowOnce:
		return t.allowed(), nil
	}
	return false, nil
}

func (t *turnOf) allowed() bool {
	t.updates.event(acp.UpdateToolCall(t.asked, acp.WithUpdateStatus(acp.ToolCallStatusInProgress)))
	return true
}

// toolResult shows the client what a call brought.
func (t *turnOf) toolResult(c record.ToolCall) {
	t.said.Reset() // the answer begins anew
	status := acp.ToolCallStatusCompleted
	if c.Error != "" {
		status = acp.ToolCallStatusFailed
	}
	var content []acp.ToolCallContent
	if c.Result != nil {
		content = []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(*c.Result))}
	}
	if t.asked != "" {
		t.updates.event(acp.UpdateToolCall(t.asked, acp.WithUpdateStatus(status), acp.WithUpdateContent(content)))
		t.asked = ""
		return
	}
	t.updates.event(acp.StartToolCall(t.session.nextCall(), t.title(c.Name, c.Arguments), acp.WithStartKind(toolKind(c.Name)),
		acp.WithStartStatus(status), acp.WithStartRawInput(c.Arguments), acp.WithStartContent(content)))
}

// maxTitle bounds the arguments in a title.
const maxTitle = 120

func (t *turnOf) title(tool string, args json.RawMessage) string {
	if server := t.from[tool]; server != "" {
		tool += " (" + server + ")"
	}
	text := string(args)
	if len(text) > maxTitle {
		text = strings.ToValidUTF8(text[:maxTitle], "") + "…"
	}
	return agents.Printable(strings.TrimSpace(tool + " " + text))
}

// toolKind tells clients which picture to show.
func toolKind(tool string) acp.ToolKind {
	switch tool {
	case "read_file", "list_folder":
		return acp.ToolKindRead
	case "write_note":
		return acp.ToolKindEdit
	}
	return acp.ToolKindOther
}

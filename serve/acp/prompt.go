package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/model"
	"agentgraph/record"
	"agentgraph/serve"
)

// prompt runs one turn and says how it ended.
func (s *server) prompt(ctx context.Context, p acp.PromptRequest, params json.RawMessage) (acp.PromptResponse, error) {
	var none acp.PromptResponse
	pr, ok := ctx.Value(promptKey{}).(*prompt)
	if !ok {
		return none, noSession(p.SessionId)
	}
	sess := pr.session // where it was closed meanwhile, the prompt is cancelled
	text, err := promptText(p.Prompt)
	if err != nil {
		return none, err
	}
	c, err := promptCall(params)
	if err != nil {
		return none, err
	}
	s.mu.Lock()
	announced := s.announced
	s.mu.Unlock()
	t := &turnOf{server: s, session: sess, announced: announced}
	t.updates = newUpdates(announced, func(u acp.SessionUpdate, tokens int) bool {
		return s.notify(ctx, sess.id, u, t.meta(tokens)) == nil
	})
	c.Prompt, c.Thread = text, string(sess.id)
	if mode := sess.currentMode(); mode != noAgent {
		c.Agent = string(mode)
	}
	c.Started, c.Progress, c.ToolResult, c.Approver = t.started, t.progress, t.toolResult, t
	c.MoreTools = t.moreTools
	rec, err := s.cfg.Service.Respond(ctx, c)
	if err == nil {
		t.finish(rec)
		s.keep(sess, rec)
	}
	t.updates.end()
	if wasCancelled(ctx, sess, rec, err) {
		return respond(acp.StopReasonCancelled, rec, announced)
	}
	if err != nil {
		return none, err
	}
	if reason, ok := stopReason(rec); ok || announced {
		return respond(reason, rec, announced)
	}
	return none, rec.Error
}

// wasCancelled reports a turn that the client took back, whatever became of
// it.
func wasCancelled(ctx context.Context, sess *session, rec *record.Record, err error) bool {
	if p, ok := ctx.Value(promptKey{}).(*prompt); ok {
		sess.mu.Lock()
		cancelled := p.cancelled
		sess.mu.Unlock()
		if cancelled {
			return true
		}
	}
	if rec == nil {
		return errors.Is(err, context.Canceled)
	}
	return rec.Outcome != nil && rec.Outcome.Status == record.Cancelled
}

// stopReason is how a turn ended in the protocol's words; ok is false where
// they say too little, because there was no answer and it was nobody's wish.
func stopReason(rec *record.Record) (reason acp.StopReason, ok bool) {
	if rec.Outcome == nil {
		return acp.StopReasonRefusal, false
	}
	switch rec.Outcome.Status {
	case record.Completed:
		return acp.StopReasonEndTurn, true
	case record.Cancelled:
		return acp.StopReasonCancelled, true
	case record.PolicyDenied:
		return acp.StopReasonRefusal, true
	case record.LimitExceeded:
		if rec.Outcome.Limit == "output_tokens" {
			return acp.StopReasonMaxTokens, true
		}
		return acp.StopReasonMaxTurnRequests, true
	}
	return acp.StopReasonRefusal, false
}

func respond(reason acp.StopReason, rec *record.Record, announced bool) (acp.PromptResponse, error) {
	resp := acp.PromptResponse{StopReason: reason}
	if !announced || rec == nil {
		return resp, nil
	}
	meta, err := taskMeta(rec)
	resp.Meta = meta
	return resp, err
}

// turnOf tells the client about one turn while it runs. Its methods are called
// by the turn, one at a time.
type turnOf struct {
	server    *server
	session   *session
	updates   *updates
	announced bool

	turn   atomic.Value // the turn's id
	shaped bool
	said   strings.Builder   // text that was sent since the last tool call
	asked  acp.ToolCallId    // a call that the client allowed
	from   map[string]string // the client's server of a tool, by the tool's name
}

func (t *turnOf) started(st serve.Started) {
	t.turn.Store(st.Turn)
	t.shaped = st.Shaped
}

// meta is what an update says beside the protocol.
func (t *turnOf) meta(tokens int) map[string]any {
	if !t.announced {
		return nil
	}
	ours := map[string]any{}
	if id, ok := t.turn.Load().(string); ok {
		ours["turn_id"] = id
	}
	if tokens > 0 {
		ours["tokens"] = tokens
	}
	return ours
}

func (t *turnOf) progress(p model.Progress) {
	if !t.shaped {
		t.said.WriteString(p.Text)
	}
	t.updates.progress(p, t.shaped)
}

// finish sends what is still missing of the answer.
func (t *turnOf) finish(rec *record.Record) {
	if t.asked != "" { // it was not allowed, or the turn ended before it ran
		t.updates.event(acp.UpdateToolCall(t.asked, acp.WithUpdateStatus(acp.ToolCallStatusFailed)))
		t.asked = ""
	}
	answer, ok := rec.Answer()
	if !ok {
		return
	}
	rest, whole := strings.CutPrefix(answer, t.said.String())
	if !whole {
		rest = "\n\n" + answer // something else was said before
	}
	if rest != "" {
		t.updates.event(acp.UpdateAgentMessageText(rest))
	}
}

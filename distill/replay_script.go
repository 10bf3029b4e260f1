package distill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v4"

	"agentgraph/model"
	"agentgraph/record"
)

// maxScriptBytes is what a scripted model reads of its file.
const maxScriptBytes = 16 << 20

// ScriptReport says what a script file holds.
type ScriptReport struct {
	Turns    int            `json:"turns"`
	Replies  int            `json:"replies"`
	Skipped  map[string]int `json:"skipped"`
	Problems int            `json:"problems"`
}

// Script writes the recorded answers of the graph or folder at root as a file
// for a scripted model: each recorded conversation gets the reply that it got
// then, tool rounds and rejected answers among them. A conversation that was
// recorded several times gets its replies in order, the last for ever.
func Script(ctx context.Context, root string, opt ReplayOptions, w io.Writer, found func(*Problem) error) (*ScriptReport, error) {
	rep := &ScriptReport{Skipped: map[string]int{}}
	s := scriptFile{left: map[string]int{}}
	for a, err := range Map(ctx, some(Answers(ctx, root, Options{Agents: opt.Agents}), opt), scripted) {
		var problem *Problem
		switch {
		case errors.As(err, &problem):
			if problem.Kind == Stray {
				continue
			}
		case err != nil:
			return nil, err
		default:
			problem = a.problem
		}
		switch {
		case problem != nil:
			rep.Problems++
			if err := found(problem); err != nil {
				return nil, err
			}
			continue
		case a.skip != "":
			rep.Skipped[a.skip]++
			continue
		}
		rep.Turns++
		if err := s.add(a.replies, a.tools); err != nil {
			return nil, err
		}
	}
	rep.Replies = len(s.replies)
	if rep.Replies == 0 {
		return rep, nil
	}
	data, err := s.encode()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	return rep, err
}

// scriptedTurn are the replies of one recorded turn.
type scriptedTurn struct {
	replies []scriptReply
	tools   bool
	skip    string
	problem *Problem
}

// scriptReply is a reply in a script file, without how often it is given.
type scriptReply struct {
	request, text, reasoning string
	calls                    []record.ToolCall
}

func scripted(_ context.Context, a *Answer) *scriptedTurn {
	if a.TurnID == "" {
		return &scriptedTurn{skip: SkipNoRecord}
	}
	rec, err := a.Record()
	if err != nil {
		return &scriptedTurn{problem: asProblem(a, err)}
	}
	text, ok := rec.Answer()
	if !ok || rec.Request == nil {
		return &scriptedTurn{skip: SkipChanged}
	}
	t := &scriptedTurn{tools: len(rec.Request.Tools) > 0}
	msgs := conversation(rec)
	n, next := len(rec.Request.Messages), 0
	for _, round := range rec.ToolRounds {
		calls := rec.ToolCalls[min(next, len(rec.ToolCalls)):min(next+round.Calls, len(rec.ToolCalls))]
		next += len(calls)
		t.replies = append(t.replies, scriptReply{model.ConversationSHA256(msgs[:n]), round.Text, round.Reasoning, calls})
		n += 1 + len(calls) // the reply and the results
	}
	if r := rec.Repair; r != nil && r.Rejected != nil && r.Feedback != nil {
		t.replies = append(t.replies, scriptReply{request: model.ConversationSHA256(msgs), text: *r.Rejected})
		msgs = LastMessages(rec)
	}
	t.replies = append(t.replies, scriptReply{model.ConversationSHA256(msgs), text, rec.Outcome.Reasoning, nil})
	return t
}

// scriptFile gathers replies; it is bounded by what a script may hold.
type scriptFile struct {
	replies []scriptReply
	left    map[string]int // how often each conversation comes
	tools   bool
	bytes   int
}

func (s *scriptFile) add(replies []scriptReply, tools bool) error {
	s.tools = s.tools || tools
	for _, r := range replies {
		s.bytes += len(r.text) + len(r.reasoning) + 128
		for _, c := range r.calls {
			s.bytes += len(c.Arguments) + len(c.Name)
		}
		s.left[r.request]++
	}
	s.replies = append(s.replies, replies...)
	if s.bytes > maxScriptBytes {
		return s.tooLarge()
	}
	return nil
}

func (s *scriptFile) tooLarge() error {
	return fmt.Errorf("the answers make a script of more than %d MiB; take fewer with --agent or --limit", maxScriptBytes>>20)
}

func (s *scriptFile) encode() ([]byte, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, r := range s.replies {
		m := mapping("request", plainNode(r.request))
		if s.left[r.request]--; s.left[r.request] > 0 {
			m.Content = append(m.Content, plainNode("times"), plainNode("1"))
		}
		m.Content = append(m.Content, plainNode("text"), textNode(r.text))
		if r.reasoning != "" {
			m.Content = append(m.Content, plainNode("reasoning"), textNode(r.reasoning))
		}
		if len(r.calls) > 0 {
			calls := &yaml.Node{Kind: yaml.SequenceNode}
			for _, c := range r.calls {
				args, err := jsonNode(c.Arguments)
				if err != nil {
					return nil, err
				}
				call := mapping("name", textNode(c.Name))
				call.Content = append(call.Content, plainNode("arguments"), args)
				calls.Content = append(calls.Content, call)
			}
			m.Content = append(m.Content, plainNode("tool_calls"), calls)
		}
		list.Content = append(list.Content, m)
	}
	root := mapping("name", textNode("recorded answers"))
	// The answers as they are: a mask would write their JSON its own way.
	root.Content = append(root.Content, plainNode("mask"), plainNode("false"))
	if s.tools {
		root.Content = append(root.Content, plainNode("tools"), plainNode("true"))
	}
	root.Content = append(root.Content, plainNode("replies"), list)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	if b.Len() > maxScriptBytes {
		return nil, s.tooLarge()
	}
	return b.Bytes(), nil
}

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{plainNode(key), value}}
}

func plainNode(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// textNode is a text that YAML takes for nothing else.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: text}
}

// jsonNode is a JSON value with its numbers as they are written.
func jsonNode(raw json.RawMessage) (*yaml.Node, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return nextNode(dec)
}

func nextNode(dec *json.Decoder) (*yaml.Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			child, err := nextNode(dec)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := dec.Token()
		return n, err
	case string:
		return textNode(t), nil
	case json.Number:
		return plainNode(t.String()), nil
	case bool:
		return plainNode(strconv.FormatBool(t)), nil
	}
	return plainNode("null"), nil
}

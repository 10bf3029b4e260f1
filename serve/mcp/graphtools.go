package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/record"
	"agentgraph/serve"
)

func (s *Server) listAgentsTool() tool {
	return tool{
		name: "list_agents", title: "List the agents", readOnly: true,
		description: "Lists the agents of the graph: what they read and write, the schema their answers are held to, and how they are doing.",
		in:          noArguments, out: listAgentsOut,
		run: func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if err := arguments(req, &struct{}{}); err != nil {
				return toolError(err), nil
			}
			list, err := s.svc.Agents()
			if err != nil {
				return toolError(err), nil
			}
			type entry struct {
				serve.AgentInfo
				AnswersURI string `json:"answers_uri"`
			}
			out := struct {
				Agents []entry `json:"agents"`
			}{[]entry{}}
			for _, a := range list {
				out.Agents = append(out.Agents, entry{a, answersURI(a.Name)})
			}
			return structured(out)
		},
	}
}

func (s *Server) sendTool() tool {
	return tool{
		name: "send", title: "Send an agent an input",
		description: "Drops an input into an agent's folder; its answer becomes a file. With wait the result is the answer, with its record. " +
			"The runner that works the graph takes it; where there is none this server works the graph until it ends.",
		in: sendIn, out: sendOut,
		run: s.send,
	}
}

type sendArgs struct {
	Agent   string `json:"agent"`
	Text    string `json:"text"`
	Name    string `json:"name"`
	Folder  string `json:"folder"`
	Wait    bool   `json:"wait"`
	Timeout *int   `json:"timeout_seconds"`
}

// Bounds of timeout_seconds.
const (
	defaultWait = 600
	maxWait     = 86400
)

func (s *Server) send(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args sendArgs
	if err := arguments(req, &args); err != nil {
		return toolError(err), nil
	}
	seconds := defaultWait
	if args.Timeout != nil {
		if seconds = *args.Timeout; seconds < 1 || seconds > maxWait {
			return toolError(fmt.Errorf("timeout_seconds: give a number from 1 to %d", maxWait)), nil
		}
	}
	progress := s.progress(ctx, req, nil)
	defer progress.end()
	sent, err := s.svc.Send(ctx, serve.Message{Agent: args.Agent, Text: args.Text, Name: args.Name, Folder: args.Folder})
	if err != nil {
		return toolError(err), nil
	}
	out := struct {
		Input  record.FileRef  `json:"input"`
		File   *string         `json:"file"`
		Output json.RawMessage `json:"output"`
		Task   json.RawMessage `json:"task"`
	}{Input: sent.Input}
	if !args.Wait {
		return structured(out)
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	rec, err := s.svc.Wait(limited, sent, progress.turn)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s has no answer after %d s; its turn goes on, and answers will list it", sent.Input.Path, seconds)
	}
	if err != nil {
		res := toolError(err)
		res.StructuredContent = out
		return res, nil
	}
	res, err := turnResult(rec)
	if err != nil {
		return nil, err
	}
	if out.Task, err = record.Marshal(rec); err != nil {
		return nil, err
	}
	out.Output = serve.Structured(rec)
	if len(rec.Outputs) > 0 {
		out.File = &rec.Outputs[0].Path
	}
	res.StructuredContent = out
	return res, nil
}

func (s *Server) answersTool() tool {
	return tool{
		name: "answers", title: "List answers", readOnly: true,
		description: "Lists the latest published answers, newest first. With agent and turn: that turn alone, with its whole record.",
		in:          answersIn, out: answersOut,
		run: s.answers,
	}
}

// maxListedText bounds the text of one answer in a list.
const maxListedText = 16 << 10

type answerEntry struct {
	serve.Answer
	Truncated bool   `json:"truncated,omitempty"`
	URI       string `json:"uri"`
	RecordURI string `json:"record_uri"`
}

func entryOf(a serve.Answer) answerEntry {
	e := answerEntry{Answer: a, URI: answerURI(a.Agent, a.File), RecordURI: recordURI(a.Agent, a.Turn)}
	if len(e.Text) > maxListedText {
		e.Text, e.Truncated = cut(e.Text, maxListedText), true
	}
	return e
}

func (s *Server) answers(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args struct {
		Agent  string `json:"agent"`
		Limit  *int   `json:"limit"`
		Before string `json:"before"`
		Turn   string `json:"turn"`
	}
	if err := arguments(req, &args); err != nil {
		return toolError(err), nil
	}
	out := struct {
		Answers []answerEntry   `json:"answers"`
		Task    json.RawMessage `json:"task,omitempty"`
	}{Answers: []answerEntry{}}
	if args.Turn != "" {
		a, rec, err := s.svc.Turn(args.Agent, args.Turn)
		if err != nil {
			return toolError(err), nil
		}
		if a != nil {
			out.Answers = append(out.Answers, entryOf(*a))
		}
		if out.Task, err = record.Marshal(rec); err != nil {
			return nil, err
		}
		return structured(out)
	}
	limit := 0
	if args.Limit != nil {
		if limit = *args.Limit; limit < 1 {
			return toolError(fmt.Errorf("limit: give a number from 1 to %d", serve.MaxAnswers)), nil
		}
	}
	list, err := s.svc.Answers(args.Agent, limit, args.Before)
	if err != nil {
		return toolError(err), nil
	}
	for _, a := range list {
		out.Answers = append(out.Answers, entryOf(a))
	}
	return structured(out)
}

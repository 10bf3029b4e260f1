package mcp

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentgraph/record"
	"agentgraph/serve"
)

// The addresses of resources. Names are escaped, so that each is one segment.
const (
	uriBase         = "agentgraph:///agents/"
	answerTemplate  = uriBase + "{agent}/output/{file}"
	recordTemplate  = uriBase + "{agent}/turns/{turn}"
	answersTemplate = uriBase + "{agent}/answers"
)

func answersURI(agent string) string { return uriBase + url.PathEscape(agent) + "/answers" }

// answerURI is the address of an answer by its file's path in the graph.
func answerURI(agent, file string) string {
	return uriBase + url.PathEscape(agent) + "/output/" + url.PathEscape(path.Base(file))
}

func recordURI(agent, turn string) string {
	return uriBase + url.PathEscape(agent) + "/turns/" + url.PathEscape(turn)
}

// address is a resource's address, taken apart. Name is the answer's file or
// the turn.
type address struct{ agent, kind, name string }

func parseURI(uri string) (address, bool) {
	rest, ok := strings.CutPrefix(uri, uriBase)
	if !ok {
		return address{}, false
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		name, err := url.PathUnescape(p)
		if err != nil || name == "" || !utf8.ValidString(name) {
			return address{}, false
		}
		parts[i] = name
	}
	switch {
	case len(parts) == 2 && parts[1] == "answers":
		return address{parts[0], "answers", ""}, true
	case len(parts) == 3 && (parts[1] == "output" || parts[1] == "turns"):
		return address{parts[0], parts[1], parts[2]}, true
	}
	return address{}, false
}

// Bounds of what resources hold. A longer answer stands in its file.
const (
	maxAnswerBytes = 16 << 20
	listedAnswers  = 50 // per agent, of resources/list and of the list's own resource
)

func (s *Server) addResources() {
	for _, t := range []struct{ template, name, description, mime string }{
		{answersTemplate, "answers", "the latest answers of an agent; changes with each new one", "application/json"},
		{answerTemplate, "answer", "a published answer", ""},
		{recordTemplate, "record", "the record of a turn", "application/json"},
	} {
		s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
			URITemplate: t.template, Name: t.name, Description: t.description, MIMEType: t.mime,
		}, s.read)
	}
}

// read is the content of a resource as it is now.
func (s *Server) read(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	text, mime, err := s.content(uri)
	if err != nil {
		return nil, err
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}, nil
}

func (s *Server) content(uri string) (text, mime string, err error) {
	at, ok := parseURI(uri)
	if !ok || !s.svc.HasAgent(at.agent) {
		return "", "", sdk.ResourceNotFoundError(uri)
	}
	var b []byte
	switch at.kind {
	case "answers":
		var list []serve.Answer
		if list, err = s.svc.Answers(at.agent, listedAnswers, ""); err == nil {
			entries := []answerEntry{}
			for _, a := range list {
				entries = append(entries, entryOf(a))
			}
			b, err = encode(map[string]any{"agent": at.agent, "answers": entries})
		}
		mime = "application/json"
	case "output":
		b, err = s.svc.AnswerFile(at.agent, at.name, maxAnswerBytes)
		mime = mimeOf(at.name)
		if err == nil && !utf8.Valid(b) {
			err = fmt.Errorf("%s is not text", at.name)
		}
	case "turns":
		var rec *record.Record
		if rec, err = s.svc.Record(at.agent, at.name); err == nil {
			b, err = record.Marshal(rec)
		}
		mime = "application/json"
	}
	if serve.NotFound(err) {
		return "", "", sdk.ResourceNotFoundError(uri)
	}
	return string(b), mime, err
}

func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".json":
		return "application/json"
	case ".md":
		return "text/markdown"
	}
	return "text/plain"
}

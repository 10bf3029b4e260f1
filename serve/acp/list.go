package acp

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"agentgraph/agents"
	"agentgraph/record"
	"agentgraph/record/store"
	"agentgraph/serve"
)

// Bounds of one page of session/list: what it holds, what is looked at for it,
// and a title.
const (
	pageSessions = 50
	pageLooks    = 2000
	maxTitleText = 80
)

// listSessions lists the threads, also those that "respond --thread" began; the
// one that was used last is first.
func (s *server) listSessions(p acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	resp := acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	var after store.ThreadInfo
	if p.Cursor != nil {
		var ok bool
		if after, ok = readCursor(*p.Cursor); !ok {
			return resp, &serve.ArgumentError{Argument: "cursor", Reason: "it is none that session/list gave"}
		}
	}
	elsewhere := s.cfg.Service.Root()
	if elsewhere == "" {
		elsewhere, _ = os.Getwd() // empty is none that anybody asks for
	}
	looks := 0
	err := s.cfg.Service.Threads(after, func(t serve.ThreadInfo) bool {
		if looks++; looks > pageLooks || len(resp.Sessions) == pageSessions {
			next := writeCursor(after)
			resp.NextCursor = &next
			return false
		}
		after = t.ThreadInfo
		info := acp.SessionInfo{SessionId: acp.SessionId(t.Name), Cwd: t.Session.Cwd}
		if info.Cwd == "" {
			info.Cwd = elsewhere
		}
		if p.Cwd != nil && filepath.Clean(*p.Cwd) != info.Cwd {
			return true
		}
		updated := t.Changed.UTC().Format(time.RFC3339)
		info.UpdatedAt = &updated
		if title := titleOf(t.First); title != "" {
			info.Title = &title
		}
		resp.Sessions = append(resp.Sessions, info)
		return true
	})
	return resp, err
}

// titleOf is the beginning of the first question, on one line.
func titleOf(text string) string {
	title := strings.Join(strings.Fields(text[:min(len(text), 8*maxTitleText)]), " ")
	if n := []rune(title); len(n) > maxTitleText {
		title = string(n[:maxTitleText]) + "…"
	}
	return agents.Printable(strings.ToValidUTF8(title, ""))
}

// A cursor is the last thread of a page.
func writeCursor(t store.ThreadInfo) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(t.Changed.UnixNano(), 10) + "/" + t.Name))
}

func readCursor(text string) (store.ThreadInfo, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	nanos, name, ok := strings.Cut(string(b), "/")
	at, numErr := strconv.ParseInt(nanos, 10, 64)
	if err != nil || numErr != nil || !ok || name == "" {
		return store.ThreadInfo{}, false
	}
	return store.ThreadInfo{Name: name, Changed: time.Unix(0, at)}, true
}

// keep notes beside the thread what the next session/list and session/load need
// to know. There is a thread from the first answer on.
func (s *server) keep(sess *session, rec *record.Record) {
	if _, ok := rec.Answer(); !ok {
		return
	}
	sess.mu.Lock()
	now := store.Session{Cwd: sess.cwd, Mode: string(sess.mode)}
	changed := now != sess.kept
	sess.mu.Unlock()
	if !changed {
		return
	}
	if err := s.cfg.Service.KeepSession(string(sess.id), now); err != nil {
		s.warn(err)
		return
	}
	sess.mu.Lock()
	sess.kept = now
	sess.mu.Unlock()
}

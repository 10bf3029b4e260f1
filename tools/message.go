package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agentgraph/model"
)

var noteName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// noteWriter is write_note: files in the agent's own notes folder.
func noteWriter(at Place) (Tool, error) {
	folder, err := filepath.Rel(at.Root, at.Notes)
	if at.Notes == "" || err != nil || !filepath.IsLocal(folder) {
		return nil, &OpenError{Tool: "write_note", Err: errors.New("only an agent has a notes folder"), Hint: "list it under an agent's tools:"}
	}
	return &function{
		spec: model.Tool{Name: "write_note", Description: "Save a note under a name, to be read later. A note of the same name is replaced.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},"text":{"type":"string","maxLength":65536}},"required":["name","text"],"additionalProperties":false}`)},
		call: func(_ context.Context, c Call) (string, error) {
			var in struct {
				Name string `json:"name"`
				Text string `json:"text"`
			}
			if err := decode(c.Arguments, &in); err != nil {
				return "", err
			}
			if !noteName.MatchString(in.Name) {
				return "", errors.New("a note's name has 1 to 100 letters, digits, '.', '_' and '-', and begins with a letter or digit")
			}
			if err := place(at.Root, folder, in.Name, in.Text, true); err != nil {
				return "", fileError("the note "+in.Name, err)
			}
			return fmt.Sprintf("saved %s (%d bytes)", filepath.ToSlash(filepath.Join(folder, in.Name)), len(in.Text)), nil
		},
	}, nil
}

// messenger is send_message: a file in the input folder of another agent. Its
// name says which turn sent it, so that whoever takes it knows its lineage.
func messenger(at Place) (Tool, error) {
	if len(at.Peers) == 0 {
		return nil, &OpenError{Tool: "send_message", Err: errors.New("there is no other agent to send to"), Hint: "add an agent that has an input folder of its own"}
	}
	names := make([]string, len(at.Peers))
	for i, p := range at.Peers {
		names[i] = p.Name
	}
	slices.Sort(names)
	enum, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	return &function{
		spec: model.Tool{Name: "send_message", Description: "Hand a message to another agent, which works on it by itself. Its answer does not come back here.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"to":{"enum":` + string(enum) + `},"text":{"type":"string","minLength":1,"maxLength":65536}},"required":["to","text"],"additionalProperties":false}`)},
		call: func(_ context.Context, c Call) (string, error) {
			var in struct {
				To   string `json:"to"`
				Text string `json:"text"`
			}
			if err := decode(c.Arguments, &in); err != nil {
				return "", err
			}
			i := slices.IndexFunc(at.Peers, func(p Peer) bool { return p.Name == in.To })
			if i < 0 {
				return "", fmt.Errorf("no agent is called %q; there are %s", in.To, strings.Join(names, ", "))
			}
			if strings.TrimSpace(in.Text) == "" {
				return "", errors.New("the message is empty")
			}
			peer := at.Peers[i]
			if hops := c.From.Hops + 1; hops > peer.MaxHops {
				return "", fmt.Errorf("the message was not sent: it would be hop %d, and %s takes at most %d", hops, peer.Name, peer.MaxHops)
			}
			folder, err := filepath.Rel(at.Root, peer.Input)
			if err != nil || !filepath.IsLocal(folder) {
				return "", fmt.Errorf("the input folder of %s lies outside the graph", peer.Name)
			}
			err = place(at.Root, folder, MessageName(c.From.TurnID, in.Text), in.Text, false)
			if err != nil && !errors.Is(err, fs.ErrExist) { // the same text of the same turn is sent once
				return "", fileError("the message", err)
			}
			return fmt.Sprintf("sent to %s (%d bytes)", peer.Name, len(in.Text)), nil
		},
	}, nil
}

// messageName is "message-", the turn that sent it, and the beginning of the
// SHA-256 of its text.
var messageName = regexp.MustCompile(`^message-([A-Za-z0-9-]{1,64})-([0-9a-f]{16})\.txt$`)

// MessageName is the name of a message's file.
func MessageName(turnID, text string) string {
	return "message-" + turnID + "-" + hashOf(text)[:16] + ".txt"
}

// SentBy is the turn that sent the message in a file of this name and with
// content of this SHA-256; ok is false for any other file.
func SentBy(name, sha256 string) (turnID string, ok bool) {
	m := messageName.FindStringSubmatch(name)
	if m == nil || !strings.HasPrefix(sha256, m[2]) {
		return "", false
	}
	return m[1], true
}

// place puts a file into a folder of the graph, whole or not at all. Without
// replace a name that is taken is fs.ErrExist.
func place(graph, folder, name, text string, replace bool) error {
	root, err := os.OpenRoot(graph)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	dir, err := root.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	var r [8]byte
	rand.Read(r[:])
	temp := ".agentgraph-tool-" + hex.EncodeToString(r[:]) + ".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer dir.Remove(temp) // gone already when all went well
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if replace {
		err = dir.Rename(temp, name)
	} else {
		err = dir.Link(temp, name)
	}
	if err != nil {
		return err
	}
	if d, err := dir.Open("."); err == nil {
		_ = d.Sync() // not every file system can
		d.Close()
	}
	return nil
}

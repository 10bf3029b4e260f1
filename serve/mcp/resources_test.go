package mcp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestResources(t *testing.T) {
	// The newest protocol has another way to subscribe.
	for _, protocol := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) { testResources(t, protocol) })
	}
}

func testResources(t *testing.T, protocol string) {
	s, svc := newServer(t, true)
	c := connectBy(t, s, protocol)
	ctx := within(t)
	list := answersURI("greeter")
	subscribe := func(uri string) {
		t.Helper()
		must(t, c.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}))
		// The newest protocol does not wait for the server.
		for known := false; !known; {
			if ctx.Err() != nil {
				t.Fatalf("%s: not subscribed", uri)
			}
			s.mu.Lock()
			known = s.subs[uri] != nil
			s.mu.Unlock()
		}
	}
	subscribe(list)
	subscribe(answerURI("greeter", "later.txt"))

	r := c.call(ctx, "send", `{"agent":"greeter","text":"hello","wait":true}`)
	if r.failed {
		t.Fatal(r.text)
	}
	await(t, c.updated, list)
	awaitAny(t, c.list)

	file, rec := answerURI("greeter", r.task.Outputs[0].Path), recordURI("greeter", *r.task.TurnID)
	res, err := c.ListResources(ctx, nil)
	must(t, err)
	var uris []string
	for _, x := range res.Resources {
		uris = append(uris, x.URI)
	}
	for _, want := range []string{list, answersURI("name with"), file, rec} {
		if !slices.Contains(uris, want) {
			t.Errorf("%s is not listed in %v", want, uris)
		}
	}
	has(t, c.text(file), "good morning")
	has(t, c.text(rec), `"schema_version"`, `"good morning"`)
	has(t, c.text(list), file, rec, "good morning")

	// One that was not there when it was subscribed to, and a record that is
	// written again.
	subscribe(rec)
	must(t, os.WriteFile(filepath.Join(svc.Root(), "agents/greeter/output/later.txt"), []byte("later"), 0o666))
	path := filepath.Join(svc.Root(), "agents/greeter/turns", *r.task.TurnID+".json")
	must(t, os.Chtimes(path, time.Now(), time.Now().Add(time.Minute)))
	await(t, c.updated, answerURI("greeter", "later.txt"), rec)
	has(t, c.text(answerURI("greeter", "later.txt")), "later")

	// An answer that is removed is listed no more.
	must(t, os.Remove(filepath.Join(svc.Root(), r.task.Outputs[0].Path)))
	res, err = c.ListResources(ctx, nil)
	must(t, err)
	if slices.ContainsFunc(res.Resources, func(x *sdk.Resource) bool { return x.URI == file }) {
		t.Error("an answer that is gone is still listed")
	}
	must(t, c.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: list}))
}

func TestResourcesThatAreNone(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	must(t, os.WriteFile(secret, []byte("secret"), 0o666))
	s, svc := newServer(t, true)
	out := filepath.Join(svc.Root(), "agents/greeter/output")
	must(t, os.MkdirAll(out, 0o777))
	must(t, os.Symlink(secret, filepath.Join(out, "link.txt")))
	must(t, os.WriteFile(filepath.Join(out, "picture.txt"), []byte("\xff\xfe\x00"), 0o666))
	c := connect(t, s)
	for _, uri := range []string{
		"agentgraph:///agents/greeter/output/none.txt",
		"agentgraph:///agents/greeter/output/link.txt",
		"agentgraph:///agents/greeter/output/picture.txt",
		"agentgraph:///agents/greeter/output/..%2Fsystem%2Frole.md",
		"agentgraph:///agents/greeter/output/%2Fetc%2Fpasswd",
		"agentgraph:///agents/..%2Fgreeter/answers",
		"agentgraph:///agents/nobody/answers",
		"agentgraph:///agents/greeter/turns/..%2F..%2Fx",
		"agentgraph:///agents/greeter/system/role.md",
		"file:///etc/passwd",
		"agentgraph:///agents/greeter/output/%ff",
	} {
		res, err := c.ReadResource(within(t), &sdk.ReadResourceParams{URI: uri})
		if err == nil {
			t.Errorf("%s: read %q", uri, res.Contents[0].Text)
		} else if strings.Contains(err.Error(), svc.Root()) {
			t.Errorf("%s: the error tells where the graph is: %v", uri, err)
		}
	}
	for _, uri := range []string{"file:///etc/passwd", "agentgraph:///agents/nobody/answers", "agentgraph:///agents/greeter/system/role.md"} {
		if err := c.Subscribe(within(t), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("%s: subscribed", uri)
		}
	}
}

func (c *client) text(uri string) string {
	c.t.Helper()
	res, err := c.ReadResource(within(c.t), &sdk.ReadResourceParams{URI: uri})
	must(c.t, err)
	return res.Contents[0].Text
}

// await returns when each of these was told of, in any order.
func await(t *testing.T, from <-chan string, want ...string) {
	t.Helper()
	late := time.After(time.Minute)
	for len(want) > 0 {
		select {
		case got := <-from:
			want = slices.DeleteFunc(want, func(uri string) bool { return uri == got })
		case <-late:
			t.Fatalf("nobody told of %v", want)
		}
	}
}

func awaitAny(t *testing.T, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(time.Minute):
		t.Fatal("nobody told of a changed list")
	}
}
